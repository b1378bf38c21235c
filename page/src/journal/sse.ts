/** Server-sent events out of bytes, however those are cut. */

/** One event; without a name of its own it is a "message". */
export interface Heard {
  event: string;
  id: string;
  data: string;
}

/** Return what takes the chunks of one stream, and tells each event as soon as it is whole. */
export function hearing(onEvent: (heard: Heard) => void): (chunk: Uint8Array) => void {
  const decoder = new TextDecoder();
  const hear = lines(onEvent);
  let rest = "";
  let endedInReturn = false;
  return (chunk) => {
    let text = decoder.decode(chunk, { stream: true });
    if (!text) return;
    // The return before was the end of a line already, and this is its other half.
    if (endedInReturn && text.startsWith("\n")) text = text.slice(1);
    endedInReturn = text ? text.endsWith("\r") : false;
    const whole = (rest + text).split(/\r\n|\r|\n/);
    rest = whole.pop() ?? "";
    whole.forEach(hear);
  };
}

/** Return what takes one line after the other. */
function lines(onEvent: (heard: Heard) => void): (line: string) => void {
  let id = "";
  let event = "";
  let data: string[] = [];
  return (line) => {
    if (line === "") {
      if (data.length) onEvent({ event: event || "message", id, data: data.join("\n") });
      event = "";
      data = [];
      return;
    }
    const { name, value } = field(line);
    if (name === "data") data.push(value);
    else if (name === "event") event = value;
    else if (name === "id" && !value.includes("\0")) id = value;
  };
}

/** Without a name it is a comment: a sign of life. */
function field(line: string): { name: string; value: string } {
  const colon = line.indexOf(":");
  if (colon < 0) return { name: line, value: "" };
  const value = line.slice(colon + 1);
  return { name: line.slice(0, colon), value: value.startsWith(" ") ? value.slice(1) : value };
}
