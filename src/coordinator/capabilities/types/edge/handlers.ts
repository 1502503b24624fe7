import type * as z from "zod";
import type { DeclaredTypes } from "../messages.ts";
import { ok, refused, type Result } from "../../../kernel/refusal.ts";
import { declarationOf, documentOf, entryText, typesOf } from "../../../../common/types/document.ts";
import { planTypes, type TypesPlan } from "../../../../common/types/plan.ts";
import { Types } from "../../../../common/types/types.ts";
import { Database } from "../../../d1/database.ts";
import { readSeen } from "../../../d1/directory-copies.ts";
import { mirrorTypes } from "../../projection/edge/mirror.ts";
import { typeRoutes } from "./routes.ts";
import type { Deployment } from "../../../isolate/deployment.ts";
import type { Handlers } from "../../../api/handler.ts";
import { operatorOf, reasonFault } from "../../../api/operator.ts";
import { DIRECTORY, reach, readTimeoutMs } from "../../../isolate/reach.ts";

type ApiSet = z.input<(typeof typeRoutes)["getTypes"]["responses"][200]["schema"]>;
type ApiPlan = Pick<
  z.input<(typeof typeRoutes)["changeTypes"]["responses"][200]["schema"]>,
  "changes" | "refusals"
>;

const typeHandlers: Handlers<typeof typeRoutes> = {
  async listTypes({ deployment }) {
    const read = await deployment.types.read();
    if (!read.ok) return read;
    const { types, refusalOfOthers } = read.value;
    // Without a whole directory, types that are not in use would be missing.
    if (refusalOfOthers !== undefined) return { ok: false, refusal: refusalOfOthers };
    return ok({ status: 200, body: { types: documentOf(types.entries) } });
  },

  async getTypes({ deployment }) {
    const read = await readTypes(deployment);
    return read.ok ? ok({ status: 200, body: toApiSet(read.value.declared) }) : read;
  },

  async changeTypes(call) {
    const { deployment, waitUntil } = call;
    const { version, types, dry_run: dryRun = false, reason } = call.body;
    const fault = reasonFault(reason, deployment.config.limits);
    if (fault !== undefined) return fault;
    const entries = typesOf(types);
    if (!entries.ok) return entries;
    const before = await readTypes(deployment);
    if (!before.ok) return before;
    const { declared } = before.value;
    const plan = toApiPlan(planTypes(new Types(declared.entries), entries.value));
    if (dryRun) return ok({ status: 200, body: { ...toApiSet(declared), dry_run: true, ...plan } });
    const changed = await reach(
      readTimeoutMs(deployment.config.limits),
      { name: DIRECTORY, advice: "the set may have been changed; read it, or repeat the call" },
      async () =>
        deployment.objects.directory().changeTypes({
          ...deployment.envelope,
          operator: operatorOf(call, reason),
          position: version,
          entries: entries.value,
          copiedAt: before.value.copiedAt,
        }),
    );
    if (!changed.ok) return changed;
    deployment.types.take(changed.value);
    // No type of the set comes into use before D1 has the set (T2). So its first begin does not have to wait.
    waitUntil(mirrorTypes(new Database(deployment.env), changed.value));
    const body = { ...toApiSet(changed.value), dry_run: false, changes: plan.changes, refusals: [] };
    return ok({ status: 200, body });
  },
};

/**
 * Reads the set, if the directory has everything that D1 has of it. A directory that has lost rows may have
 * forgotten that a type is in use, and would let its rule be changed (H2, T6).
 */
async function readTypes(
  deployment: Deployment,
): Promise<Result<{ declared: DeclaredTypes; copiedAt: number }>> {
  const database = new Database(deployment.env);
  const seen = await readSeen(database);
  if (!seen.ok) return refused("UNAVAILABLE", "the copies of the directory in D1 cannot be read");
  const { objects, envelope, config } = deployment;
  const { point, typesPosition: copiedAt } = seen.value;
  const snapshot = await reach(readTimeoutMs(config.limits), { name: DIRECTORY }, () =>
    objects.directory().snapshot({
      ...envelope,
      copiedAt,
      ...(point === undefined ? {} : { seen: point }),
    }),
  );
  if (!snapshot.ok) return snapshot;
  const { types } = snapshot.value;
  if (types === null) throw new Error("the directory left out the types, which this call needs");
  deployment.types.take(types);
  return ok({ declared: types, copiedAt });
}

function toApiSet({ position, entries }: DeclaredTypes): ApiSet {
  const used = documentOf(entries.filter(({ isInUse }) => isInUse));
  return {
    version: position,
    types: documentOf(entries),
    in_use: {
      bucket_types: Object.keys(used.bucket_types),
      subject_types: Object.keys(used.subject_types),
      source_types: Object.keys(used.source_types),
    },
  };
}

const toApiPlan = ({ changes, refusals }: TypesPlan): ApiPlan => ({
  changes: changes.map(({ change, kind, name, before, after }) => ({
    entry: entryText(kind, name),
    change,
    before: before && declarationOf(before),
    after: after && declarationOf(after),
  })),
  refusals: refusals.map(({ kind, name, reason }) => ({ entry: entryText(kind, name), reason })),
});

export { typeHandlers as handlers, typeRoutes as routes };
