import type { ComponentChildren } from "preact";
import { Icon, type IconName } from "./icon";

interface ButtonProps {
  children?: ComponentChildren;
  icon?: IconName;
  /** Needed where there is no text. */
  label?: string;
  kind?: "plain" | "main" | "danger" | "quiet";
  isSmall?: boolean;
  isDisabled?: boolean;
  isPressed?: boolean;
  submits?: boolean;
  onClick?: (event: MouseEvent) => void;
}

export function Button(props: ButtonProps) {
  const { children, icon, label, kind = "plain", isSmall = false, isDisabled = false, submits = false } = props;
  const names = ["button", `button-${kind}`, isSmall ? "button-small" : "", children ? "" : "button-icon"];
  return (
    <button
      type={submits ? "submit" : "button"}
      class={names.filter(Boolean).join(" ")}
      aria-label={label}
      title={children ? undefined : label}
      aria-pressed={props.isPressed}
      disabled={isDisabled}
      onClick={props.onClick}
    >
      {icon && <Icon name={icon} size={isSmall ? 14 : 16} />}
      {children}
    </button>
  );
}
