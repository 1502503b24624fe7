import { gitlabTypes } from "../../common/types/gitlab.ts";
import { invalid } from "../api/batch.ts";
import {
  ClassifyAction,
  ClassifyType,
  type Claim,
  type ClassifyService,
  type CellInfoSchema,
  type CellService,
  type GetCellsResponseSchema,
} from "./protobuf.ts";
import { nameOfClaim, type NumberedName, typesOf } from "./names.ts";
import { callOf, type WireCall, type WireService, type WireContext } from "./wire-call.ts";
import type { MessageInitShape } from "@bufbuild/protobuf";

const { PAGES_DOMAINS, PAGES_UNIQUE_DOMAINS } = gitlabTypes.bucket_types;
const PAGES: ReadonlySet<number> = new Set([PAGES_DOMAINS.number, PAGES_UNIQUE_DOMAINS.number]);

export const classifyService: WireService<typeof ClassifyService> = {
  getCells,

  async classify({ type, value, claim, claims }, context) {
    const call = await callOf(context, "classify");
    const sent = claims.length > 0 ? claims : claim === undefined ? [] : [claim];
    const names = namesOf(call, sent, (index) => (claims.length > 0 ? `claims[${index}]` : "claim"));
    const cell = { type: ClassifyType[type] ?? String(type), ...(value === "" ? {} : { value }) };
    const { address, ...matched } = await classified(call, sent, names, cell);
    return { action: ClassifyAction.PROXY, proxy: { address }, ...matched };
  },

  async classifyPages({ claims }, context) {
    const call = await callOf(context, "classify");
    if (claims.length === 0) call.value(invalid("claims", "must have at least one item"));
    const names = namesOf(call, claims, (index) => `claims[${index}]`);
    const other = names.find(({ number }) => !PAGES.has(number));
    if (other !== undefined)
      call.value(
        invalid(other.field, "must be a `pages_domain` or a `pages_unique_domain`; send others to Classify"),
      );
    const { address, ...matched } = await classified(call, claims, names, {});
    return { action: ClassifyAction.PROXY, pagesAddress: address, ...matched };
  },
};

function namesOf(
  call: WireCall,
  claims: readonly Claim[],
  placeOf: (index: number) => string,
): NumberedName[] {
  const { lookupBuckets } = call.deployment.config.limits;
  if (claims.length > lookupBuckets)
    call.fail("INVALID_ARGUMENT", `\`claims\` has more than ${lookupBuckets} items; send fewer`);
  return claims.map((claim, index) => call.value(nameOfClaim(claim, placeOf(index))));
}

/** Finds the cell of the first claim that exists or, without claims, the one of the type and value. */
async function classified(
  call: WireCall,
  claims: readonly Claim[],
  names: readonly NumberedName[],
  cell: { type?: string; value?: string },
): Promise<{ address: string; matchedClaim?: Claim }> {
  const numbers = names.map(({ number, field }) => ({ kind: "bucket" as const, number, field }));
  const { nameOf } = call.value(await typesOf(call.deployment, numbers));
  const asked = names.map(({ number, value }) => ({ type: nameOf("bucket", number), value }));
  const { proxy, matched_claim: found } = await call.send("classify", {
    body: { ...cell, ...(asked.length === 0 ? {} : { claims: asked }) },
  });
  const matched = claims[asked.findIndex(({ type, value }) => type === found?.type && value === found.value)];
  return { address: proxy.address, ...(matched === undefined ? {} : { matchedClaim: matched }) };
}

interface ApiCell {
  id: string;
  address: string;
}

/** What `SESSION_PREFIX` finds the cell by. */
export const infoOf = ({ id, address }: ApiCell): MessageInitShape<typeof CellInfoSchema> => ({
  id: BigInt(id),
  address,
  sessionPrefix: `cell-${id}`,
});

export async function getCells(
  _: unknown,
  context: WireContext,
): Promise<MessageInitShape<typeof GetCellsResponseSchema>> {
  const call = await callOf(context, "listCellAddresses");
  const { cells } = await call.send("listCellAddresses", {});
  return { cells: cells.map(infoOf) };
}

export const cellService: WireService<typeof CellService> = {
  async getCell({ cellId }, context) {
    const call = await callOf(context, "listCellAddresses");
    const { cells } = await call.send("listCellAddresses", {});
    const cell = cells.find(({ id }) => id === String(cellId));
    return { cellInfo: infoOf(cell ?? call.fail("NOT_FOUND", `there is no cell ${cellId}`)) };
  },
};
