/** Times, sizes and amounts as people read them. */

import { gatewayTime } from "./clock.ts";

const DAY_MS = 86_400_000;
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const date = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const dateWithYear = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" });
const dateAndTime = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const month = new Intl.DateTimeFormat(undefined, { month: "long", year: "numeric" });
const number = new Intl.NumberFormat();

/** Return a moment in its shortest clear form: the time for today, else the date. */
export function moment(at: number, now = Date.now()): string {
  const then = new Date(at);
  const today = new Date(now);
  if (then.toDateString() === today.toDateString()) return clock.format(then);
  return then.getFullYear() === today.getFullYear() ? date.format(then) : dateWithYear.format(then);
}

export const fullMoment = (at: number) => dateAndTime.format(at);
export const clockTime = (at: number) => clock.format(at);

/** Return the heading for the day of a moment. */
export function dayOf(at: number, now = Date.now()): string {
  const start = new Date(now).setHours(0, 0, 0, 0);
  if (at >= start) return "Today";
  if (at >= start - DAY_MS) return "Yesterday";
  if (at >= start - 6 * DAY_MS) return "Previous 7 days";
  if (at >= start - 29 * DAY_MS) return "Previous 30 days";
  return month.format(at);
}

/** Return the time until or since a moment. */
export function relative(at: number, now = gatewayTime()): string {
  const away = at - now;
  const span = duration(Math.abs(away));
  return away > 0 ? `in ${span}` : Math.abs(away) < 1_000 ? "now" : `${span} ago`;
}

export function duration(ms: number): string {
  if (ms < 950) return `${Math.round(ms)} ms`;
  if (ms < 59_500) return `${(ms / 1_000).toFixed(ms < 9_950 ? 1 : 0)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 1_440) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return `${Math.floor(minutes / 1_440)} d ${Math.floor((minutes % 1_440) / 60)} h`;
}

/** Return how far a clock is off. */
export const lead = (ms: number) => `${duration(Math.abs(ms))} ${ms > 0 ? "ahead" : "behind"}`;

export const count = (amount: number) => number.format(amount);
export const plural = (amount: number, one: string, many = `${one}s`) =>
  `${count(amount)} ${amount === 1 ? one : many}`;

export function tokens(amount: number): string {
  if (amount < 10_000) return count(amount);
  return amount < 1_000_000 ? `${(amount / 1_000).toFixed(1)}k` : `${(amount / 1_000_000).toFixed(2)}M`;
}

export function price(micros: number): string {
  if (micros >= 10_000_000) return `$${(micros / 1_000_000).toFixed(2)}`;
  return micros >= 100 ? `$${(micros / 1_000_000).toFixed(4)}` : "under $0.0001";
}

export function bytes(amount: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  const step = amount > 0 ? Math.min(Math.floor(Math.log(amount) / Math.log(1_024)), units.length - 1) : 0;
  const size = amount / 1_024 ** step;
  return `${step && size < 10 ? size.toFixed(1) : Math.round(size)} ${units[step]}`;
}

export const percent = (share: number) => `${Math.round(share * 100)} %`;

const weekdayAndDate = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long" });
const longDate = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "long", year: "numeric" });

export const isSameDay = (one: number, other: number) =>
  new Date(one).toDateString() === new Date(other).toDateString();

export function dayName(at: number, now = Date.now()): string {
  if (isSameDay(at, now)) return "Today";
  if (isSameDay(at, now - DAY_MS)) return "Yesterday";
  return (new Date(at).getFullYear() === new Date(now).getFullYear() ? weekdayAndDate : longDate).format(at);
}
