import { useEffect } from "preact/hooks";
import { logIn } from "../state/session";
import { Field, Form } from "../ui/form";
import { Mark } from "../ui/icon";

export function LoginPage() {
  useEffect(() => {
    document.title = "Log in · Bullpen";
  }, []);
  return (
    <main class="login">
      <div class="card login-card">
        <h1 class="brand">
          <Mark />
          Bullpen
        </h1>
        <Form verb="Log in" onSend={(values) => logIn(values.text("name") ?? "", values.secret("password"))}>
          <Field label="Name" name="name" isRequired autocomplete="username" />
          <Field label="Password" name="password" type="password" isRequired autocomplete="current-password" />
        </Form>
        <p class="muted">
          No account yet? An admin makes one in Settings, or in a terminal with <code>bullpen users create</code>.
        </p>
      </div>
    </main>
  );
}
