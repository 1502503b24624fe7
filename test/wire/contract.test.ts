/** The claims service in workerd, over Connect and gRPC-Web. */
import { wireSuite } from "../suites/wire/suite.ts";
import { startDeployment } from "../support/workerd/api.ts";
import { protocols, transportOf } from "./clients.ts";

for (const protocol of protocols)
  wireSuite(protocol, async () => {
    const deployed = await startDeployment("1", "2");
    return {
      api: deployed,
      transport: (key) => transportOf(deployed, protocol, key),
      isJson: protocol === "Connect JSON",
    };
  });
