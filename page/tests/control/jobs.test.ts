// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { scheduleText } from "../../src/control/jobs/schedule.tsx";

test.each([
  ["30 7 * * *", "every day at 07:30"],
  ["0 9 * * 1-5", "at 09:00 from Monday to Friday"],
  ["20 6,18 * * SUN", "at 06:20 and 18:20 on Sundays"],
  ["0 8 1,15 * *", "at 08:00 on day 1 and 15 of the month"],
  ["5 4 * jan,7 *", "every day at 04:05 in January and July"],
  ["*/15 * * * *", "every 15 minutes"],
  ["* * * * *", "every minute"],
  ["0 * * * *", "every hour"],
  ["10 */6 * * 7", "every 6 hours, at minute 10 on Sundays"],
  ["at 2031-05-04T09:30", "once"],
])("%s is read as: %s", (schedule, words) => {
  expect(scheduleText(schedule)).toBe(words);
});

// Cron gives these another meaning than a plain sentence, or none.
test.each([
  "*/45 * * * *",
  "0 9 13 * 5",
  "0 9 * * 1#2",
  "0 9 L * *",
  "61 7 * * *",
  "0 9 * * 8",
  "0 9 * 13 *",
  "0 9 * * M",
  "1-5 * * * *",
  "0 9 * *",
  "soon",
  "",
])("%s has no reading", (schedule) => {
  expect(scheduleText(schedule)).toBeNull();
});
