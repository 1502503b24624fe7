import type { Bucket } from "../src/users/client/index.ts";
import type { Claim } from "./entry.ts";
import { keyOf } from "./names.ts";
import type { ClaimRecord } from "./records.ts";

/** The state of one cell, as its own database and the coordinator report it. */
export interface CellFacts {
  cell: string;
  /** The claims that the rows of its own database call for. */
  claims: Claim[];
  /** The coordinator's listing in its own order, one source type after the other. */
  records: ClaimRecord[];
  outstandingHere: string[];
  outstandingThere: string[];
}

export interface Facts {
  /** Every name of the workload. `found` has the router's answer for each one, at the same index. */
  asked: Bucket[];
  found: (ClaimRecord | undefined)[];
  cells: CellFacts[];
  /** Violations that were noticed during the run. */
  problems: string[];
}

const bucketKey = ({ type, value }: Bucket): string => `${type} ${keyOf(value)}`;
const claimText = ({ bucket, subject, source }: Claim): string =>
  `${bucket.type} ${bucket.value}, ${subject.type} ${subject.id}, ${source.type} ${source.id}`;

/**
 * Returns one sentence for each violation. An empty list means that every name has at most one owner, and
 * that the cells, the router and the coordinator agree on the owner.
 */
export function findDifferences(facts: Facts): string[] {
  const owners = new Map<string, { cell: string; claim: Claim }>();
  const found: string[] = [...facts.problems];
  for (const { cell, claims } of facts.cells) {
    for (const claim of claims) {
      const key = bucketKey(claim.bucket);
      const other = owners.get(key);
      if (other === undefined) owners.set(key, { cell, claim });
      else
        found.push(
          `${claim.bucket.type} ${claim.bucket.value}: two owners, cell ${other.cell} and cell ${cell}`,
        );
    }
  }
  const asked = new Set(facts.asked.map(bucketKey));
  for (const [key, { cell }] of owners)
    if (!asked.has(key)) found.push(`${key}: cell ${cell} has it, but it was not looked up`);
  if (facts.found.length !== facts.asked.length)
    found.push(`${facts.asked.length} names were looked up, but ${facts.found.length} were answered`);
  for (const [index, bucket] of facts.asked.entries())
    found.push(...compareLookup(bucket, owners.get(bucketKey(bucket)), facts.found[index]));
  for (const cell of facts.cells) found.push(...compareListing(cell), ...compareLeases(cell));
  return found;
}

/** Compares the router's answer for one name with the rows of the cells. */
function compareLookup(
  { type, value }: Bucket,
  owner: { cell: string; claim: Claim } | undefined,
  record: ClaimRecord | undefined,
): string[] {
  const name = `${type} ${value}`;
  if (record === undefined)
    return owner === undefined ? [] : [`${name}: cell ${owner.cell} has it, but the router finds no owner`];
  if (owner === undefined) return [`${name}: the router finds cell ${record.cell}, which does not have it`];
  if (record.cell !== owner.cell)
    return [`${name}: cell ${owner.cell} has it, but the router finds cell ${record.cell}`];
  return compareRecord(name, owner.claim, record);
}

function compareRecord(name: string, claim: Claim, record: ClaimRecord): string[] {
  const wanted = claimText(claim);
  const got = claimText(record);
  if (wanted !== got) return [`${name}: its cell has "${wanted}", but the coordinator has "${got}"`];
  // All leases are over by now, so a record that still refers to a lease would never be released.
  if (record.status !== "ACTIVE" || record.lease !== undefined)
    return [`${name}: ${record.status}, held by lease ${record.lease ?? "none"}, though no lease is open`];
  return [];
}

function compareListing({ cell, claims, records }: CellFacts): string[] {
  const found: string[] = [];
  const listed = new Map<string, ClaimRecord>();
  const last = new Map<string, number>();
  for (const record of records) {
    const key = bucketKey(record.bucket);
    if (listed.has(key)) found.push(`${key}: listed twice for cell ${cell}`);
    listed.set(key, record);
    if (record.cell !== cell) found.push(`${key}: a record of cell ${record.cell}, listed for cell ${cell}`);
    const id = Number(record.source.id);
    if (id < (last.get(record.source.type) ?? 0))
      found.push(`${key}: out of order in the listing of cell ${cell}`);
    last.set(record.source.type, id);
  }
  for (const claim of claims) {
    const key = bucketKey(claim.bucket);
    const record = listed.get(key);
    listed.delete(key);
    if (record === undefined)
      found.push(`${key}: cell ${cell} has it, but the listing of its records does not`);
    else found.push(...compareRecord(`${key} in the listing`, claim, record));
  }
  for (const key of listed.keys()) found.push(`${key}: listed for cell ${cell}, which does not have it`);
  return found;
}

function compareLeases({ cell, outstandingHere, outstandingThere }: CellFacts): string[] {
  return [
    ...outstandingHere.map((uuid) => `lease ${uuid}: cell ${cell} still has it as an outstanding lease`),
    ...outstandingThere.map(
      (uuid) => `lease ${uuid} of cell ${cell}: neither committed nor rolled back at the coordinator`,
    ),
  ];
}
