import * as z from "zod";
import {
  cellId,
  keyId,
  nextPageToken,
  nothing,
  pageSize,
  pageToken,
  time,
} from "../../../api/contract/fields.ts";
import { boundedList } from "../../../api/contract/lists.ts";
import { route } from "../../../api/contract/route.ts";
import { role } from "../../../api/contract/schemas.ts";

/** A page of the console. D1 binds at most 100 values. */
const MAX_IDS = 50;

const kind = z.enum(["key", "certificate", "token"]);

const use = z
  .strictObject({
    id: z.string().meta({ description: "The id of the key, or what the log has in its place." }),
    kind: kind.meta({ description: "`token` is a subject of an issuer, whichever token it had." }),
    role,
    cell_id: cellId.nullable(),
    issued_by: z.string().nullable().meta({
      description: "The authority of the certificate, or the issuer of the token, by its name here.",
    }),
    name: z.string().nullable().meta({
      description: "The name in the certificate that a rule fits, or the subject of the token.",
    }),
    expires_at: time.nullable().meta({ description: "Null for tokens: a subject has many." }),
    first_used_at: time,
    last_used_at: time.meta({ description: "The beginning of the hour in which it was used last." }),
    revoked_at: time.nullable(),
  })
  .meta({ id: "CredentialUse", description: "A credential that was used, and by whom." });

export const credentialRoutes = {
  listCredentialUses: route({
    group: "keys",
    method: "GET",
    path: "/v1/admin/credential-uses",
    summary: "List the credentials that were used",
    about:
      "Lists keys, certificates and subjects of tokens that were used, in the order of their ids, with the " +
      "hour of the last use. Uses are recorded about once per hour, after the answer, and one that D1 did " +
      "not get is missing. At most 10,000 are kept: those that were used last, within the longest life of " +
      "a key. Revocations appear here after about a minute.",
    roles: ["operator", "viewer"],
    params: nothing,
    query: z.strictObject({
      kind: kind.optional().meta({ description: "Only credentials of this kind." }),
      id: boundedList(keyId, MAX_IDS, {
        description: "Only the credential with this id. Repeat the parameter for several.",
      }).optional(),
      page_size: pageSize.optional(),
      page_token: pageToken.optional(),
    }),
    responses: {
      200: {
        about: "A page of uses.",
        schema: z.strictObject({ uses: z.array(use), next_page_token: nextPageToken }),
        example: {
          uses: [
            {
              id: "6ab1f5d2-9b0c-8f43-a1de-0c8f2a94f2b7",
              kind: "certificate" as const,
              role: "cell" as const,
              cell_id: "7",
              issued_by: "cells-2026",
              name: "cell-7.cells.example",
              expires_at: "2026-12-27T10:39:45.000Z",
              first_used_at: "2026-11-02T08:00:00.000Z",
              last_used_at: "2026-11-27T10:00:00.000Z",
              revoked_at: null,
            },
          ],
          next_page_token: "",
        },
      },
    },
    errors: [{ code: "UNAVAILABLE", when: "D1 cannot be read." }],
    example: { query: { kind: "certificate" } },
  }),
};
