import type * as z from "zod";
import type { Types } from "../../../../common/types/types.ts";
import { named, scopeOf, timeOf } from "../../../api/answers.ts";
import type { Change } from "../messages.ts";
import type { change as changeSchema } from "./routes.ts";

export function toApiChange(
  types: Types,
  shard: number,
  { event, position, atMs, cell, lease, epoch, claim }: Change,
): z.input<typeof changeSchema> {
  const id = [event, shard, epoch, claim === undefined ? lease : claim.uuid].join(":");
  const common = { id, event, shard, position, at: timeOf(atMs), cell_id: cell, lease_uuid: lease, epoch };
  if (claim === undefined) return common;
  if (claim.details === null) return { ...common, claim: { uuid: claim.uuid } };
  const { type } = claim;
  const { value, subject, source, scope } = claim.details;
  return {
    ...common,
    claim: {
      uuid: claim.uuid,
      bucket: named(types, "bucket", { type, value }),
      subject: named(types, "subject", subject),
      source: named(types, "source", source),
      ...scopeOf(scope),
    },
  };
}
