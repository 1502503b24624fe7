/** All methods of the wire, each with what serves it. */
import {
  create,
  type DescMethod,
  type DescMethodUnary,
  type DescService,
  type Message,
} from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { logFault } from "../api/problem.ts";
import { cellService, classifyService } from "./classify-service.ts";
import { claimService } from "./claim-service.ts";
import { CellService, ClaimService, ClassifyService, HealthService } from "./protobuf.ts";
import { refusalOf, callOf, type WireContext, type WireService } from "./wire-call.ts";

const probe =
  (route: "getReadiness" | "getHealth") =>
  async (_: unknown, context: WireContext): Promise<Record<string, never>> => {
    const call = await callOf(context, route);
    await call.send(route, {});
    return {};
  };

const healthService: WireService<typeof HealthService> = {
  readinessProbe: probe("getReadiness"),
  livenessProbe: probe("getHealth"),
};

export interface WireMethod {
  desc: DescMethodUnary;
  /** Calls the method. Throws only errors of the wire: a fault is logged, and its text stays inside. */
  call: (request: Message, context: WireContext) => Promise<Message>;
}

function methodsOf<Service extends DescService>(
  service: Service,
  implementation: WireService<Service>,
): WireMethod[] {
  return service.methods.map((desc) => {
    // An implementation has a function for each method, which TypeScript cannot follow here.
    const serve = (implementation as unknown as Record<string, Serve>)[desc.localName];
    if (serve === undefined || !isUnary(desc)) throw new Error(`${desc.name} is not served`);
    return {
      desc,
      call: async (request, context) => {
        const { caller } = context;
        caller.isRead = true;
        try {
          return create(desc.output, await serve(request, context));
        } catch (error) {
          if (error instanceof ConnectError) throw error;
          throw refusalOf(logFault(error, caller.trace, caller.log), caller.trace);
        }
      },
    };
  });
}

const isUnary = (desc: DescMethod): desc is DescMethodUnary => desc.methodKind === "unary";

type Serve = (request: Message, context: WireContext) => Promise<Message>;

export const methods: readonly WireMethod[] = [
  ...methodsOf(ClaimService, claimService),
  ...methodsOf(ClassifyService, classifyService),
  ...methodsOf(CellService, cellService),
  ...methodsOf(HealthService, healthService),
];
