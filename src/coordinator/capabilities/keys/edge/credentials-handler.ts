import { ok } from "../../../kernel/refusal.ts";
import { listCredentialUses } from "./credential-uses.ts";
import { timeOf } from "../../../api/answers.ts";
import { credentialRoutes } from "./routes.ts";
import type { Handlers } from "../../../api/handler.ts";
import { pageOf } from "../../../api/paging.ts";
import { UNREADABLE_PROJECTION, withFailure } from "../../../isolate/reach.ts";

const credentialHandlers: Handlers<typeof credentialRoutes> = {
  async listCredentialUses(call) {
    const page = await pageOf<string>(call);
    if (!page.ok) return page;
    const { limit, position, next } = page.value;
    const { kind, id: keyIds } = call.query;
    const listed = await listCredentialUses(call.deployment.env, {
      limit,
      ...(kind === undefined ? {} : { kind }),
      ...(keyIds === undefined ? {} : { keyIds }),
      ...(position === undefined ? {} : { after: position }),
    });
    // The error of D1 is only for the log, so it is replaced here.
    if (!listed.ok) return withFailure(listed, UNREADABLE_PROJECTION);
    const { uses, more } = listed.value;
    return ok({
      status: 200,
      body: {
        uses: uses.map((use) => ({
          id: use.keyId,
          kind: use.kind,
          role: use.role,
          cell_id: use.cellId,
          issued_by: use.issuedBy,
          name: use.name,
          expires_at: use.expiresAtMs === null ? null : timeOf(use.expiresAtMs),
          first_used_at: timeOf(use.firstUsedAtMs),
          last_used_at: timeOf(use.lastUsedAtMs),
          revoked_at: use.revokedAtMs === null ? null : timeOf(use.revokedAtMs),
        })),
        next_page_token: await next(more ? uses.at(-1)?.keyId : undefined),
      },
    });
  },
};

export { credentialHandlers as handlers, credentialRoutes as routes };
