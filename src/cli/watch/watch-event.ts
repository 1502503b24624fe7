/** Something that has changed. */
export interface WatchEvent {
  /** The line of `--jsonl`. */
  document: Readonly<Record<string, unknown>>;
  /** Safe to show on a terminal. Undefined: only programs need it. */
  text?: string;
}

export interface Watched {
  /** Looks once, and returns what has changed since the last look. */
  poll: () => Promise<WatchEvent[]>;
  /** Where `--from` continues. Undefined: not known yet. */
  readonly place: string | undefined;
}
