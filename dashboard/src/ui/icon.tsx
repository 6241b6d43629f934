// Line icons on a 16 × 16 grid, drawn for this page.
const PATHS = {
  overview: "M2.5 9.5h3l2-5 2.5 8 2-4.5h1.5",
  jobs: "M3 4h10M3 8h10M3 12h6",
  runs: "M8 1.8l1.5 4.7 4.7 1.5-4.7 1.5L8 14.2l-1.5-4.7L1.8 8l4.7-1.5z",
  credits: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM10 6.2C9.6 5.5 8.9 5.2 8 5.2c-1.2 0-2 .5-2 1.4 0 2 4.1.8 4.1 2.8 0 .9-.9 1.4-2.1 1.4-1 0-1.7-.4-2.1-1.1M8 4v1.2M8 10.8V12",
  failures: "M8 2.5 14 13H2L8 2.5ZM8 6.5v3M8 11.2v.1",
  schedules: "M8 4.5V8l2.5 1.5M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0Z",
  workers: "M4 4h8v8H4zM6.5 1.5V4M9.5 1.5V4M6.5 12v2.5M9.5 12v2.5M1.5 6.5H4M1.5 9.5H4M12 6.5h2.5M12 9.5h2.5",
  dead: "M2.5 4.5h11M6 4.5V3h4v1.5M4 4.5l.7 8.5h6.6l.7-8.5",
  audit: "M4 2.5h6l2.5 2.5v8.5H4zM6 7.5h4M6 10h4",
  settings: "M2.5 5h6M11.5 5h2M2.5 11h2M7.5 11h6M10 3.5v3M6 9.5v3",
  queue: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  flow: "M3 8h3M6 8c2 0 2-4 4-4h3M6 8c2 0 2 4 4 4h3",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  play: "M5 3.2v9.6L12.5 8z",
  retry: "M13 8a5 5 0 1 1-1.6-3.7M13 2.5v3h-3",
  close: "M4 4l8 8M12 4l-8 8",
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10ZM10.6 10.6 14 14",
  copy: "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
  check: "M3 8.5 6.5 12 13 4.5",
  more: "M3.5 8h.1M8 8h.1M12.5 8h.1",
  menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  sun: "M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM8 1.5V3M8 13v1.5M1.5 8H3M13 8h1.5M3.4 3.4l1 1M11.6 11.6l1 1M3.4 12.6l1-1M11.6 4.4l1-1",
  moon: "M13 9.5A5.5 5.5 0 0 1 6.5 3 5.5 5.5 0 1 0 13 9.5Z",
  right: "M6 3.5 10.5 8 6 12.5",
  down: "M3.5 6 8 10.5 12.5 6",
  left: "M10 3.5 5.5 8l4.5 4.5",
  plus: "M8 3v10M3 8h10",
  keyboard: "M1.5 4.5h13v7h-13zM4 7h.1M6.5 7h.1M9 7h.1M11.5 7h.1M5 9.5h6",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}

export function Mark() {
  return (
    <svg class="mark" width="22" height="22" viewBox="0 0 32 32" aria-hidden="true">
      <path d="M5 6c0 5 3 8 7 8h8c4 0 7-3 7-8" />
      <path d="M10 14v7a6 6 0 0 0 12 0v-7" />
      <circle cx="16" cy="22" r="2.4" />
    </svg>
  );
}
