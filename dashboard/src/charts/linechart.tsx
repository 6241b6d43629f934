// Lines over time with a grid, a legend and a reading under the pointer.
import { useRef, useState } from "preact/hooks";
import { minuteTime } from "../format";
import { useWidth } from "./width";
import { roundUp } from "./minutes";

export interface Line {
  name: string;
  /** Names the colour. */
  tone: string;
  isFilled?: boolean;
  values: (number | null)[];
}

interface LineChartProps {
  label: string;
  times: number[];
  lines: Line[];
  show: (value: number) => string;
}

const HEIGHT = 176;
const TOP = 10;
const BOTTOM = 22;
const LEFT = 52;
const RIGHT = 8;
const GRID = [0, 0.5, 1];

export function LineChart({ label, times, lines, show }: LineChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box, 560);
  const [at, setAt] = useState<number | null>(null);
  const most = roundUp(Math.max(0, ...lines.flatMap((line) => line.values.map((value) => value ?? 0))));
  const inner = Math.max(1, width - LEFT - RIGHT);
  const x = (index: number): number => LEFT + (times.length < 2 ? 0 : (index / (times.length - 1)) * inner);
  const y = (value: number): number => TOP + (1 - value / most) * (HEIGHT - TOP - BOTTOM);
  const marks = width < 420 ? 3 : 5;

  function point(event: PointerEvent): void {
    const left = box.current?.getBoundingClientRect().left ?? 0;
    const index = Math.round(((event.clientX - left - LEFT) / inner) * (times.length - 1));
    setAt(Math.min(times.length - 1, Math.max(0, index)));
  }

  return (
    <div class="chart" ref={box} onPointerMove={point} onPointerLeave={() => setAt(null)}>
      <Legend lines={lines} at={at ?? times.length - 1} time={at === null ? null : (times[at] ?? null)} show={show} />
      <svg width={width} height={HEIGHT} role="img" aria-label={label}>
        <title>{label}</title>
        {GRID.map((part) => (
          <g key={part}>
            <line class="chart-grid" x1={LEFT} x2={width - RIGHT} y1={y(part * most)} y2={y(part * most)} />
            <text class="chart-word" x={LEFT - 8} y={y(part * most) + 4} text-anchor="end">
              {show(part * most)}
            </text>
          </g>
        ))}
        {Array.from({ length: marks }, (_, mark) => Math.round((mark / (marks - 1)) * (times.length - 1))).map((index) => (
          <text key={index} class="chart-word" x={x(index)} y={HEIGHT - 4} text-anchor={anchor(index, times.length)}>
            {minuteTime(times[index] ?? 0)}
          </text>
        ))}
        {lines.map((line) => (
          <g key={line.name}>
            {line.isFilled && <path class={`area fill-${line.tone}`} d={areaOf(line.values, x, y)} />}
            <path class={`line stroke-${line.tone}`} d={pathOf(line.values, x, y)} />
          </g>
        ))}
        {at !== null && <line class="chart-pointer" x1={x(at)} x2={x(at)} y1={TOP} y2={HEIGHT - BOTTOM} />}
      </svg>
    </div>
  );
}

function Legend({ lines, at, time, show }: { lines: Line[]; at: number; time: number | null; show: (value: number) => string }) {
  return (
    <div class="legend">
      {lines.map((line) => (
        <span key={line.name} class={`legend-line tone-${line.tone}`}>
          <i class="dot" />
          {line.name} <b>{line.values[at] === null || line.values[at] === undefined ? "–" : show(line.values[at])}</b>
        </span>
      ))}
      <span class="legend-time">{time === null ? "" : minuteTime(time)}</span>
    </div>
  );
}

type Scale = (value: number) => number;

function pathOf(values: (number | null)[], x: Scale, y: Scale): string {
  let isDown = false;
  return values
    .map((value, index) => {
      if (value === null) {
        isDown = false;
        return "";
      }
      // A value alone between gaps would be invisible as a line: it becomes a dash.
      const isAlone = !isDown && (values[index + 1] ?? null) === null;
      const step = `${isDown ? "L" : "M"}${(x(index) - (isAlone ? 2 : 0)).toFixed(1)} ${y(value).toFixed(1)}`;
      isDown = true;
      return isAlone ? `${step}h4` : step;
    })
    .join("");
}

function areaOf(values: (number | null)[], x: Scale, y: Scale): string {
  const whole = values.map((value) => value ?? 0);
  return `${pathOf(whole, x, y)}L${x(whole.length - 1).toFixed(1)} ${y(0)}L${x(0).toFixed(1)} ${y(0)}Z`;
}

function anchor(index: number, length: number): "start" | "middle" | "end" {
  return index === 0 ? "start" : index === length - 1 ? "end" : "middle";
}
