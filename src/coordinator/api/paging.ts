import type { Principal } from "../auth/principal.ts";
import { ok, type Result } from "../kernel/refusal.ts";
import type { Deployment } from "../isolate/deployment.ts";
import type { PageTokens } from "./page-token.ts";

interface PagedQuery {
  page_size?: number | undefined;
  page_token?: string | undefined;
  /** The filters. */
  [name: string]: unknown;
}

interface PagedCall {
  routeId: string;
  deployment: Deployment;
  principal: Principal;
  tokens: PageTokens;
  params: unknown;
  query: PagedQuery;
}

export interface Page<Position> {
  limit: number;
  /** Undefined on the first page. */
  position: Position | undefined;
  /**
   * Makes the token for the page after a position. Undefined (this is the last page) gives an empty token.
   */
  next: (position: Position | undefined) => Promise<string>;
}

/** Reads the paging parameters. A token is bound to everything that determines what the pages contain. */
export async function pageOf<Position>({
  routeId,
  deployment,
  principal,
  tokens,
  params,
  query,
}: PagedCall): Promise<Result<Page<Position>>> {
  const { page_size: size, page_token: token, ...filters } = query;
  const { pageItems, maxPageItems } = deployment.config.limits;
  const scope = [routeId, principal.role, principal.cell, params, filters];
  const position = await tokens.read<Position>(scope, token);
  if (!position.ok) return position;
  return ok({
    limit: Math.min(size ?? pageItems, maxPageItems),
    position: position.value,
    next: async (after) => (after === undefined ? "" : tokens.make(scope, after)),
  });
}
