// The page as a whole: login or shell, and what lies above every page.
import { isLoggedOut } from "./api/client";
import { currentPath, navigate } from "./router";
import { pageAt } from "./routes";
import { LoginPage } from "./pages/login";
import { caller, findOutWhoIAm, me, startProblem } from "./state/session";
import { isHelpOpen, useShortcuts } from "./state/shortcuts";
import { toggleTheme } from "./state/theme";
import { Confirmation } from "./ui/dialog";
import { Help } from "./ui/help";
import { ProblemNote, Skeleton } from "./ui/notes";
import { SecretDialog } from "./ui/secret";
import { Shell } from "./ui/shell";
import { Toasts } from "./ui/toasts";

const GO: Record<string, string> = {
  "g o": "/",
  "g j": "/jobs",
  "g r": "/runs",
  "g f": "/failures",
  "g d": "/dead-letters",
  "g s": "/schedules",
  "g w": "/workers",
  "g c": "/credits",
  "g a": "/audit",
  "g ,": "/settings",
};

export function App() {
  useShortcuts({
    ...Object.fromEntries(Object.entries(GO).map(([keys, address]) => [keys, () => navigate(address)])),
    "/": () => {
      const search = document.querySelector<HTMLInputElement>("input[type=search]");
      if (search) search.focus();
      else navigate("/jobs?focus=search");
    },
    "?": () => {
      isHelpOpen.value = true;
    },
    t: toggleTheme,
  });
  return (
    <>
      {body()}
      <Toasts />
      <Confirmation />
      <SecretDialog />
      {isHelpOpen.value && <Help />}
    </>
  );
}

function body() {
  if (isLoggedOut.value) return <LoginPage />;
  if (me.value) return <Shell key={caller.value}>{pageAt(currentPath.value)}</Shell>;
  return (
    <main class="page">
      {startProblem.value ? (
        <ProblemNote problem={startProblem.value} onRetry={() => void findOutWhoIAm()} />
      ) : (
        <Skeleton lines={8} />
      )}
    </main>
  );
}
