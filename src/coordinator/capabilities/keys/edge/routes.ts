import * as z from "zod";
import { limitTable } from "../../../../common/limits.ts";
import {
  cellId,
  cellIdInBody,
  keyId,
  nextPageToken,
  nothing,
  pageSize,
  pageToken,
  reason,
  time,
  wellFormedText,
} from "../../../api/contract/fields.ts";
import { boundedList } from "../../../api/contract/lists.ts";
import { route, unknownCell } from "../../../api/contract/route.ts";
import { key, mintedKey, role } from "../../../api/contract/schemas.ts";
import { changing, directoryDown, removed } from "../../cells/edge/routes.ts";

const exampleKey = {
  id: "01936f6e-2c1a-7c3e-9d56-3a1f0c9b7e42",
  role: "cell",
  cell_id: "7",
  created_at: "2026-11-20T12:00:00.000Z",
  expires_at: "2027-02-18T12:00:00.000Z",
  note: "deployed with ansible",
};
const exampleRevoked = { ...exampleKey, revoked_at: "2026-12-01T08:30:00.000Z" };

const newKey = z
  .strictObject({
    role,
    cell_id: cellIdInBody
      .optional()
      .meta({ description: "The cell of the key. Required for the role `cell`, refused for the others." }),
    expires_in_s: z
      .int()
      .min(1)
      .optional()
      .meta({
        description:
          `Lifetime in seconds, at most ${limitTable.keyLifetimeS.default} (400 days). Left out: 90 ` +
          "days.",
      }),
    note: wellFormedText(256, "What the key is for.").optional(),
    reason: reason.optional(),
  })
  .meta({ id: "NewKey" });

const revocation = z
  .strictObject({
    cell_id: cellIdInBody.optional().meta({
      description:
        "The cell of a key that was made offline. Without it, the cell's ledger doesn't learn of the " +
        "revocation.",
    }),
    reason: reason.optional(),
  })
  .meta({ id: "Revocation" });

export const keyRoutes = {
  mintKey: route({
    group: "keys",
    method: "POST",
    path: "/v1/admin/keys",
    summary: "Make a key",
    about: "Makes a key and lists it. Only this answer contains the key itself, so save it.",
    roles: ["operator"],
    params: nothing,
    query: nothing,
    body: { schema: newKey, required: true },
    responses: {
      201: {
        about: "The new key.",
        schema: mintedKey,
        example: { ...exampleKey, key: "lhk_eyJ2IjoxLCJpZCI6…" },
      },
    },
    errors: [unknownCell, removed, ...changing],
    example: { body: { role: "cell", cell_id: "7", expires_in_s: 7_776_000, note: "deployed with ansible" } },
  }),
  listKeys: route({
    group: "keys",
    method: "GET",
    path: "/v1/admin/keys",
    summary: "List keys",
    about: "Lists every key that was made or revoked here, the latest change last.",
    roles: ["operator", "viewer"],
    params: nothing,
    query: z.strictObject({ page_size: pageSize.optional(), page_token: pageToken.optional() }),
    responses: {
      200: {
        about: "A page of keys.",
        schema: z.strictObject({ keys: z.array(key), next_page_token: nextPageToken }),
        example: { keys: [exampleRevoked], next_page_token: "" },
      },
    },
    errors: [directoryDown],
    example: {},
  }),
  revokeKey: route({
    group: "keys",
    method: "POST",
    path: "/v1/admin/keys/{id}/revoke",
    summary: "Revoke a key",
    about:
      "Revokes a key. `/v1/cells/…` refuses a revoked cell key at once, because the cell's ledger " +
      "learns of the revocation first. All other routes, and keys of other roles, take up to 30 " +
      "seconds. If you revoke the key that you are using, this call is its last, so make another " +
      "operator key first. You can also revoke a key that was made offline: give its id, and for a cell " +
      "key `cell_id`.",
    roles: ["operator"],
    params: z.strictObject({ id: keyId }),
    query: nothing,
    body: { schema: revocation, required: false },
    responses: {
      200: {
        about: "The key is revoked.",
        schema: z.strictObject({ key }),
        example: { key: exampleRevoked },
      },
    },
    errors: [
      {
        code: "RESOURCE_EXHAUSTED",
        when: "Too many revoked keys have not expired yet. Rotate the signing secret instead.",
      },
      unknownCell,
      ...changing,
    ],
    example: { params: { id: "01936f6e-2c1a-7c3e-9d56-3a1f0c9b7e42" } },
  }),
};

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
