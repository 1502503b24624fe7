import type { Principal } from "../auth/principal.ts";

const principals = new WeakMap<Request, Principal>();

/**
 * Makes the API treat this request as one with the principal's key. The console calls it for the requests
 * that it makes itself, inside the process. Nothing that arrives from outside is the same object, so nobody
 * else can be vouched for. Role, cell, form and revocation are checked as for every request.
 */
export const vouchFor = (request: Request, principal: Principal): void =>
  void principals.set(request, principal);

export const vouchedPrincipal = (request: Request): Principal | undefined => principals.get(request);
