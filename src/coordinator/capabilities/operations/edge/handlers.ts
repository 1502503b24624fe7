import type { OperatorCall } from "../../../kernel/messages.ts";
import type { OperationSet } from "../operations.ts";
import { ok, type Result } from "../../../kernel/refusal.ts";
import { toApiOperation } from "../../../api/problem.ts";
import { operationRoutes } from "./routes.ts";
import type { Deployment } from "../../../isolate/deployment.ts";
import type { Call, Handlers } from "../../../api/handler.ts";
import { operatorOf, reasonFault } from "../../../api/operator.ts";
import { DIRECTORY, reach, readTimeoutMs } from "../../../isolate/reach.ts";

const UNSURE = "it may have been done; read the operations, or repeat the call";

type Directory = ReturnType<Deployment["objects"]["directory"]>;

const operationHandlers: Handlers<typeof operationRoutes> = {
  async listOperations({ deployment }) {
    const read = await ask(deployment, (directory) => directory.operations(deployment.envelope));
    return read.ok
      ? ok({ status: 200, body: { operations: inOrder(read.value).map(toApiOperation) } })
      : read;
  },

  async startRestore(call) {
    const { id, kind } = call.body;
    const begun = await change(call, (directory, message) =>
      directory.beginOperation({ ...message, operation: { id, kind, about: "deployment" } }),
    );
    return begun.ok ? ok({ status: 200, body: { operation: toApiOperation(begun.value) } }) : begun;
  },

  async endRestore(call) {
    // A restore has a UUID, which answers have in lower case.
    const id = call.params.operation.toLowerCase();
    const ended = await change(call, (directory, message) => directory.endRestore({ ...message, id }));
    return ended.ok ? ok({ status: 200, body: { operation: null } }) : ended;
  },
};

const inOrder = ({ operations }: OperationSet): OperationSet["operations"] =>
  operations.toSorted((a, b) => a.startedAtMs - b.startedAtMs);

const ask = <T>(
  { objects, config }: Deployment,
  work: (directory: Directory) => Promise<Result<T>>,
  advice?: string,
): Promise<Result<T>> =>
  reach(readTimeoutMs(config.limits), { name: DIRECTORY, ...(advice && { advice }) }, () =>
    work(objects.directory()),
  );

function change<T>(
  call: Call<(typeof operationRoutes)["startRestore" | "endRestore"]>,
  work: (directory: Directory, message: OperatorCall) => Promise<Result<T>>,
): Promise<Result<T>> | Result<T> {
  const { deployment, body } = call;
  const fault = reasonFault(body.reason, deployment.config.limits);
  if (fault !== undefined) return fault;
  const message = { ...deployment.envelope, operator: operatorOf(call, body.reason) };
  return ask(deployment, (directory) => work(directory, message), UNSURE);
}

export { operationHandlers as handlers, operationRoutes as routes };
