import { edgeHandlers } from "../capabilities/edges.ts";
import type { Routes } from "./contract.ts";
import type { Handlers } from "./handler.ts";
import { leaseHandlers } from "./handlers/leases.ts";
import { serviceHandlers } from "./handlers/service.ts";

/** The handler of each route. It doesn't compile if a route of the contract has none. */
export const handlers: Handlers<Routes> = { ...leaseHandlers, ...edgeHandlers, ...serviceHandlers };
