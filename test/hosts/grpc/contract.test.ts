/** What a transport could change, over native gRPC with mTLS, with a client of `@grpc/grpc-js`. */
import { nettingSuite } from "../../suites/wire/netting.ts";
import { transportSuite, type WireCoordinator } from "../../suites/wire/suite.ts";
import { nativeTransport } from "./native-transport.ts";
import { keyIn } from "../../suites/conformance/coordinator.ts";
import { places, serveGrpc } from "./served.ts";

for (const place of places) {
  const start = async (): Promise<WireCoordinator> => {
    const deployment = await serveGrpc(place);
    const client = deployment.connect();
    return {
      api: deployment.api,
      transport: (key) =>
        nativeTransport(client, async () => (key === "" ? undefined : keyIn(deployment.served.keys, key))),
      close: deployment.close,
    };
  };
  transportSuite(`native gRPC, ${place}`, start);
  nettingSuite(`a name in both lists, ${place}`, start);
}
