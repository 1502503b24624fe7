import { protocolSuite } from "../suites/protocol.ts";
import { startWorld } from "./world.ts";

protocolSuite("the Durable Objects in workerd", startWorld);
