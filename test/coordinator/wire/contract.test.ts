/** The claims service in workerd, over Connect, and what could differ over the other protocols. */
import { nettingSuite } from "../../suites/wire/netting.ts";
import { transportSuite, wireSuite, type WireCoordinator } from "../../suites/wire/suite.ts";
import { startDeployment } from "../../support/workerd/api.ts";
import { protocols, transportOf, type Protocol } from "./clients.ts";

async function start(protocol: Protocol): Promise<WireCoordinator> {
  const deployed = await startDeployment("1", "2");
  return {
    api: deployed,
    transport: (key) => transportOf(deployed, protocol, key),
    isJson: protocol === "Connect JSON",
  };
}

for (const protocol of protocols) {
  const suite = protocol === "Connect" ? wireSuite : transportSuite;
  suite(protocol, () => start(protocol));
}
nettingSuite("a name in both lists, Connect", () => start("Connect"));
