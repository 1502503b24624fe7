import type { Context } from "../framework/context.ts";
import { toJson } from "../../common/text/escape.ts";
import type { Result } from "../output/result.ts";

export async function showIdentities(context: Context): Promise<Result> {
  const shown = await (await context.client()).identities.get();
  const { issuers, authorities, authority_expiries: expiries } = shown;
  return {
    document: { ...shown },
    text: () => toJson({ issuers, authorities }, 2),
    notes: expiries.map(
      ({ name, expires_at: at }) => `The certificate of the authority ${name} expires at ${at}.`,
    ),
  };
}
