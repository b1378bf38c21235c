/** Schedules in words.  A schedule that no short sentence describes is shown as it is written. */

import { gatewayTime } from "../../clock.ts";
import { Badge, Time } from "../../ui/parts.tsx";
import type { JobView } from "../../wire.ts";

/** A schedule in words, if there are any, and as it is written. */
export function Schedule({ schedule }: { schedule: string }) {
  const words = scheduleText(schedule);
  return (
    <span class="schedule">
      {words && <span>{words[0]!.toUpperCase() + words.slice(1)}</span>}
      <code>{schedule}</code>
    </span>
  );
}

/** When a job runs next. */
export function NextRun({ job }: { job: JobView }) {
  if (job.paused) return <Badge tone="busy">Paused</Badge>;
  if (job.next_at === null) return <span class="faint">no more runs</span>;
  // Compared by the gateway's clock; a job that is due starts within seconds.
  return job.next_at <= gatewayTime() ? <Badge tone="busy">Due now</Badge> : <Time at={job.next_at} as="relative" />;
}

const WEEKDAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"] as const;
const MONTHS = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
] as const;
const ONCE = "at ";
const SHORT_LETTERS = 3;
/** A list of more times than this is no easier to read. */
const TIMES_MAX = 4;

/** Return a schedule in words; null if no short sentence describes it. */
export function scheduleText(schedule: string): string | null {
  if (schedule.startsWith(ONCE)) return "once";
  const fields = schedule.trim().split(/\s+/);
  if (fields.length !== 5) return null;
  const [minute, hour, day, month, weekday] = fields as [string, string, string, string, string];
  const when = timeOf(minute, hour);
  const days = daysOf(day, weekday);
  const months = monthsOf(month);
  if (when === null || days === null || months === null) return null;
  const daily = when.startsWith("at ") && !days ? "every day" : "";
  return [daily, when, days, months].filter(Boolean).join(" ");
}

function timeOf(minute: string, hour: string): string | null {
  const everyMinutes = stepOf(minute, 60);
  if (everyMinutes !== null && hour === "*")
    return everyMinutes === 1 ? "every minute" : `every ${everyMinutes} minutes`;
  const minutes = numbers(minute, 59);
  if (minutes?.length !== 1) return null;
  const everyHours = stepOf(hour, 24);
  if (everyHours !== null) return hourly(minutes[0]!, everyHours);
  const hours = numbers(hour, 23);
  if (!hours || hours.length > TIMES_MAX) return null;
  return `at ${listed(hours.map((each) => `${twoDigits(each)}:${twoDigits(minutes[0]!)}`))}`;
}

function hourly(minute: number, step: number): string {
  const every = step === 1 ? "every hour" : `every ${step} hours`;
  return minute === 0 ? every : `${every}, at minute ${minute}`;
}

/** With both fields set, cron runs on either; that is rare, and hard to put into words. */
function daysOf(day: string, weekday: string): string | null {
  if (day === "*" && weekday === "*") return "";
  if (day === "*") return weekdaysOf(weekday);
  if (weekday !== "*") return null;
  const days = numbers(day, 31);
  return days && `on day ${listed(days.map(String))} of the month`;
}

function weekdaysOf(field: string): string | null {
  const range = /^(\w+)-(\w+)$/.exec(field);
  if (range) {
    const [first, last] = [named(range[1]!, WEEKDAYS, 0), named(range[2]!, WEEKDAYS, 0)];
    return first && last && `from ${first} to ${last}`;
  }
  const days = field.split(",").map((each) => named(each, WEEKDAYS, 0));
  return days.includes(null) ? null : `on ${listed(days.map((each) => `${each}s`))}`;
}

function monthsOf(field: string): string | null {
  if (field === "*") return "";
  const months = field.split(",").map((each) => named(each, MONTHS, 1));
  return months.includes(null) ? null : `in ${listed(months.map(String))}`;
}

/** Return the name for a number or its first letters. */
function named(text: string, names: readonly string[], first: number): string | null {
  if (/^\d{1,2}$/.test(text)) return names[Number(text) - first] ?? null;
  const short = text.toLowerCase();
  if (short.length !== SHORT_LETTERS) return null;
  return names.find((name) => name.toLowerCase().startsWith(short)) ?? null;
}

/** Return the step of a field; null if the step does not divide the range evenly. */
function stepOf(field: string, round: number): number | null {
  if (field === "*") return 1;
  const step = Number(/^\*\/(\d{1,2})$/.exec(field)?.[1] ?? 0);
  return step > 0 && step < round && round % step === 0 ? step : null;
}

function numbers(field: string, most: number): number[] | null {
  const found = field.split(",");
  if (!found.every((each) => /^\d{1,2}$/.test(each) && Number(each) <= most)) return null;
  return found.map(Number);
}

const twoDigits = (value: number) => String(value).padStart(2, "0");

function listed(names: readonly string[]): string {
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}
