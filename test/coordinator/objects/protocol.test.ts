import { platformSuite } from "../../suites/protocol/platform.ts";
import { startObjects } from "./workerd-objects.ts";

platformSuite("the Durable Objects in workerd", startObjects);
