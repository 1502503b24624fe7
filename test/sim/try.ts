import { run } from "./run.ts";
const from = Number(process.argv[2] ?? 1), count = Number(process.argv[3] ?? 1), steps = Number(process.argv[4] ?? 500);
const t = performance.now(); let total = 0; const seen: Record<string, number> = {}; let bad = 0;
for (let seed = from; seed < from + count; seed++) {
  const r = await run({ seed, steps });
  total += r.steps;
  for (const [k, v] of Object.entries(r.seen)) seen[k] = (seen[k] ?? 0) + v;
  if (r.violation) { bad++; if (bad<6) { console.log(seed, r.steps, r.violation.rule, r.violation.message); if (count === 1) console.log(r.log.join("\n")); } }
}
console.log({ total, ms: performance.now() - t, bad });
if (process.argv[5]) console.log(Object.fromEntries(Object.entries(seen).sort()));
