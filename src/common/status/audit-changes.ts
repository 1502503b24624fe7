interface Entry {
  request_id: string;
  action: string;
  target: string;
  part: string;
  before: Readonly<Record<string, unknown>> | null;
  after: Readonly<Record<string, unknown>> | null;
}

export type AuditChange<Of extends Entry> = Of & {
  /** The parts that have an entry of it. */
  parts: readonly string[];
};

/**
 * What operators changed. A change that several objects carried out has an entry in each of them (O1), such
 * as a revocation in the ledger of a cell and in the directory. Those of one request are one change here. It
 * has the time of the entry that is listed first, and what each of them says of the state.
 */
export function auditChanges<Of extends Entry>(entries: readonly Of[]): AuditChange<Of>[] {
  const changes = new Map<string, AuditChange<Of>>();
  for (const entry of entries) {
    const id = `${entry.request_id} ${entry.action} ${entry.target}`;
    const first = changes.get(id);
    changes.set(
      id,
      first === undefined
        ? { ...entry, parts: [entry.part] }
        : {
            ...first,
            parts: [...first.parts, entry.part].toSorted(),
            before: merged(entry.before, first.before),
            after: merged(entry.after, first.after),
          },
    );
  }
  return [...changes.values()];
}

const merged = (one: Entry["before"], other: Entry["before"]): Entry["before"] =>
  one === null || other === null ? (one ?? other) : { ...one, ...other };
