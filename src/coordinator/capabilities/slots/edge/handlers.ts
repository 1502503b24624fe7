import type * as z from "zod";
import type { VerificationSlot } from "../directory.ts";
import { ok } from "../../../kernel/refusal.ts";
import { verificationRoutes } from "./routes.ts";
import type { Handlers } from "../../../api/handler.ts";
import { DIRECTORY, reach, readTimeoutMs } from "../../../isolate/reach.ts";
import { timeOf } from "../../../api/answers.ts";
import { authorize } from "../../../api/handlers/ledger-access.ts";

type ApiSlot = z.input<
  (typeof verificationRoutes)["takeVerificationSlot"]["responses"][200]["schema"]
>["slot"];

const verificationHandlers: Handlers<typeof verificationRoutes> = {
  async takeVerificationSlot({ deployment, principal, params: { cell, uuid } }) {
    const authorized = await authorize(deployment, principal, cell);
    if (!authorized.ok) return authorized;
    const request = { ...deployment.envelope, cell, uuid };
    const taken = await reach(readTimeoutMs(deployment.config.limits), target, () =>
      deployment.objects.directory().takeSlot(request),
    );
    return taken.ok ? ok({ status: 200, body: { slot: toApiSlot(taken.value) } }) : taken;
  },

  async releaseVerificationSlot({ deployment, principal, params: { cell, uuid } }) {
    const authorized = await authorize(deployment, principal, cell);
    if (!authorized.ok) return authorized;
    const request = { ...deployment.envelope, cell, uuid };
    const released = await reach(readTimeoutMs(deployment.config.limits), target, () =>
      deployment.objects.directory().releaseSlot(request),
    );
    return released.ok ? ok({ status: 200, body: { released: released.value } }) : released;
  },
};

const target = { name: DIRECTORY, advice: "repeat the call" };

const toApiSlot = ({ uuid, cell, expiresAtMs, expiresInMs }: VerificationSlot): ApiSlot => ({
  uuid,
  cell_id: cell,
  expires_at: timeOf(expiresAtMs),
  expires_in_ms: expiresInMs,
});

export { verificationHandlers as handlers, verificationRoutes as routes };
