/** What the info string of a fence means. */

/** What people and models write, where it is not the name of the grammar or one of its own aliases. */
const GRAMMARS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    console: "shell",
    dockerfile: "bash",
    jsonc: "json",
    json5: "json",
    jsx: "javascript",
    svelte: "xml",
    tsx: "typescript",
    vue: "xml",
    zsh: "bash",
  }),
);
const LABELS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    cpp: "C++",
    csharp: "C#",
    css: "CSS",
    go: "Go",
    html: "HTML",
    javascript: "JavaScript",
    js: "JavaScript",
    json: "JSON",
    md: "Markdown",
    php: "PHP",
    py: "Python",
    rb: "Ruby",
    rs: "Rust",
    sh: "Shell",
    sql: "SQL",
    toml: "TOML",
    ts: "TypeScript",
    tsx: "TSX",
    typescript: "TypeScript",
    xml: "XML",
    yaml: "YAML",
    yml: "YAML",
  }),
);

export interface Language {
  label: string;
  /** Which grammar colours it; null where none is named. */
  grammar: string | null;
}

export function languageOf(info: string): Language {
  const name = /^[\w+#.-]+/.exec(info.trim())?.[0].toLowerCase() ?? "";
  if (!name) return { label: "Text", grammar: null };
  const label = LABELS.get(name) ?? name[0]!.toUpperCase() + name.slice(1);
  return { label, grammar: GRAMMARS.get(name) ?? name };
}

/** Return the language that a file is probably written in, by its name. */
export function languageOfFile(path: string): string {
  return /\.([\w+]+)$/.exec(path)?.[1] ?? "";
}
