/** Every command of `leasehold`, with arguments with which it works, in an order in which it does. */

/** What the steps need of each other: ids, by names that only this table uses. */
export type Facts = Record<string, string>;

export interface Step {
  /** The words after `leasehold`, such as `leases show`. */
  command: string;
  args?: (facts: Facts) => readonly string[];
  /** 0 by default. */
  code?: number;
  /** Standard input. */
  input?: (facts: Facts) => string;
  /** The text that has to be in the output of a command that runs until SIGINT. */
  until?: string;
  /** Keeps a field of the output of `--json` for later steps, by the last of these names. */
  keep?: readonly string[];
  /** It needs `node:sqlite`, and says so on an older Node. */
  needsSqlite?: true;
}

const fixed = (...args: readonly string[]) => ({ args: () => args });
const why = ["--reason", "a test", "--yes"] as const;
const changed = (...args: readonly string[]) => fixed(...args, ...why);
const decided = (command: string, lease: string): Step => ({
  command,
  args: (facts) => [facts[lease] ?? "", "--cell", "1", ...why],
});
const ofTransfer = (command: string, code = 0): Step => ({
  command,
  code,
  args: ({ transfer = "" }) => [transfer, ...(/verify|finish|show/.test(command) ? [] : why)],
});
const scope = ["--from", "1", "--to", "2", "--scope", "9970"] as const;

export const steps: readonly Step[] = [
  { command: "status" },
  { command: "doctor", ...fixed("--no-probe") },
  { command: "lookup", ...fixed("seed-00001", "--type", "USERNAMES", "--trace") },
  { command: "leases ls", ...fixed("--stale", "--older-than", "0s") },
  { command: "leases show", args: ({ lease = "" }) => [lease, "--cell", "1"] },
  decided("leases commit", "lease"),
  decided("leases rollback", "otherLease"),
  { command: "claims ls", ...fixed("--cell", "1") },
  { command: "claims show", ...fixed("seed-00001", "--type", "USERNAMES") },
  { command: "claims find", ...fixed("USER", "1") },
  { command: "claims export", ...fixed("--cell", "1", "--source", "RAILS_TABLE_USERS") },
  { command: "claims history", ...fixed("seed-00001", "--type", "USERNAMES") },
  { command: "claims erase-history", ...changed("seed-00001", "--type", "USERNAMES") },
  { command: "transfers ls" },
  { command: "transfers plan", ...fixed(...scope) },
  {
    command: "transfers prepare",
    ...changed(...scope),
    keep: ["transfer", "id", "transfer"],
  },
  ofTransfer("transfers show"),
  ofTransfer("transfers accept"),
  ofTransfer("transfers verify", 10),
  ofTransfer("transfers cut", 3),
  ofTransfer("transfers abort"),
  ofTransfer("transfers switch-back", 3),
  ofTransfer("transfers finish", 3),
  { command: "cells ls" },
  { command: "cells show", ...fixed("1") },
  { command: "cells add", ...fixed("4", "--name", "four", "--address", "https://four.example") },
  { command: "cells set", ...changed("4", "--name", "vier") },
  { command: "cells freeze", ...changed("4") },
  { command: "cells thaw", ...changed("4") },
  { command: "cells drain", ...changed("4") },
  { command: "cells undrain", ...changed("4") },
  { command: "cells remove", args: () => ["4", "--dry-run"] },
  { command: "verify status", code: 1 },
  { command: "verify report", ...fixed("--cell", "1"), code: 1 },
  {
    command: "keys mint",
    ...fixed("--role", "router", "--expires-in", "1h"),
    keep: ["id", "key"],
  },
  { command: "keys ls" },
  { command: "keys rotate", args: ({ key = "" }) => [key] },
  { command: "keys revoke", args: ({ key = "" }) => [key, ...why] },
  { command: "shards show" },
  { command: "shards grow", ...changed("--to", "3", "--no-cut") },
  { command: "shards abort", ...changed() },
  { command: "operations ls" },
  { command: "operations end", ...changed("01936f6e-2c1a-7c3e-9d56-3a1f0c9b7e42") },
  { command: "upgrade show" },
  { command: "upgrade finish", ...changed() },
  { command: "backup create", ...fixed("backup.jsonl") },
  { command: "backup verify", ...fixed("backup.jsonl", "--online") },
  { command: "restore", args: () => ["backup.jsonl", "--dry-run"], code: 3 },
  { command: "watch", ...fixed("--changes", "--jsonl", "--from", "0:0"), until: "{", code: 130 },
  { command: "parts show", ...fixed("shard-0") },
  { command: "parts reconcile", ...changed("shard-0", "--declare-lost") },
  { command: "parts finish", ...changed("shard-0") },
  { command: "scrub", ...fixed("--run") },
  {
    command: "webhooks add",
    ...fixed("--disabled"),
    input: () => "https://hooks.example.com/leasehold\n",
    keep: ["webhook", "id", "webhook"],
  },
  { command: "webhooks ls" },
  { command: "webhooks set", args: ({ webhook = "" }) => [webhook, "--for", "10m", ...why] },
  { command: "webhooks deliveries", args: ({ webhook = "" }) => [webhook] },
  { command: "webhooks test", args: ({ webhook = "" }) => [webhook], code: 1 },
  { command: "webhooks rm", args: ({ webhook = "" }) => [webhook, ...why] },
  { command: "types show" },
  { command: "types plan", ...fixed("--file", "types.json"), code: 10 },
  { command: "types apply", ...changed("--file", "types.json") },
  { command: "identities show" },
  { command: "identities plan", ...fixed("--file", "identities.json") },
  { command: "identities apply", ...changed("--file", "identities.json") },
  { command: "identities explain", ...fixed("--issuer", "https://issuer.example.com", "--subject", "a") },
  { command: "audit", ...fixed("--since", "1h") },
  { command: "route test", ...fixed("https://app.example.com/seed-00001", "--rules", "rules.json") },
  { command: "route check", ...fixed("rules.json") },
  { command: "api", ...fixed("GET", "/v1/limits") },
  { command: "grpc", args: ({ port = "" }) => ["--port", port], until: "127.0.0.1", code: 0 },
  { command: "bench", ...fixed("--leases", "20") },
  {
    command: "conformance",
    args: () => ["--histories", "1", "--key", "cell-1.key", "--other-key", "cell-2.key"],
  },
  { command: "login", ...fixed("--name", "here"), input: ({ operator = "" }) => operator },
  { command: "context ls" },
  { command: "context use", ...fixed("here") },
  { command: "context rm", ...fixed("here", "--yes") },
  { command: "completion", ...fixed("bash") },
  {
    command: "dev",
    args: ({ port = "" }) => ["--temporary", "--no-save", "--jsonl", "--port", port],
    until: "{",
    needsSqlite: true,
  },
];
