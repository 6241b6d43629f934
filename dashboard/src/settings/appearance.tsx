import { setTheme, theme, type Theme } from "../state/theme";
import { Card } from "../ui/page";

const CHOICES: [Theme, string, string][] = [
  ["system", "As the system", "follows the light and dark of this device"],
  ["light", "Light", "dark ink on paper"],
  ["dark", "Dark", "easy at night"],
];

export function Appearance() {
  return (
    <Card title="Theme">
      <div class="choices" role="radiogroup" aria-label="Theme">
        {CHOICES.map(([value, name, hint]) => (
          <label key={value} class="choice">
            <input type="radio" name="theme" value={value} checked={theme.value === value} onChange={() => setTheme(value)} />
            <span>
              <b>{name}</b>
              <small>{hint}</small>
            </span>
          </label>
        ))}
      </div>
    </Card>
  );
}
