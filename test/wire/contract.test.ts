/** The claims service in workerd, over Connect, and what could differ over the other protocols. */
import { transportSuite, wireSuite } from "../suites/wire/suite.ts";
import { startDeployment } from "../support/workerd/api.ts";
import { protocols, transportOf } from "./clients.ts";

for (const protocol of protocols) {
  const suite = protocol === "Connect" ? wireSuite : transportSuite;
  suite(protocol, async () => {
    const deployed = await startDeployment("1", "2");
    return {
      api: deployed,
      transport: (key) => transportOf(deployed, protocol, key),
      isJson: protocol === "Connect JSON",
    };
  });
}
