import { protocolSuite } from "../suites/protocol.ts";
import { startObjects } from "./workerd-objects.ts";

protocolSuite("the Durable Objects in workerd", startObjects);
