const PLACEHOLDERS = [
  ["{message}", "a field of what is sent"],
  ["{host.name}", "a field in a field"],
  ["{items.0.name}", "the first of a list"],
  ["{event_type}", "the event, as GitHub, Slack and others name it"],
  ["{__raw__}", "the first 4,000 characters of it all"],
  ["{{ and }}", "a brace"],
] as const;

/** What may stand in a prompt. */
export function Placeholders() {
  return (
    <details class="placeholders">
      <summary>What can stand in it</summary>
      <dl>
        {PLACEHOLDERS.map(([written, meaning]) => (
          <div key={written}>
            <dt>
              <code>{written}</code>
            </dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
      <p>What is not there reads &lt;missing&gt;.</p>
    </details>
  );
}
