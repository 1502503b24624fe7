/** The peer `leasehold`, as `npm start` runs it. */
import { startCoordinator } from "../../src/hosts/workerd/coordinator.ts";
import { cellKeys, VARIABLES } from "./cell-keys.ts";
import { folderOf, serve } from "./serve.ts";

const coordinator = await startCoordinator({
  port: 0,
  stateFolder: folderOf(process.argv),
  variables: VARIABLES,
});
const { url, keys } = coordinator;
serve({ url, keys: await cellKeys(url, keys.operator), router: keys.router }, () => coordinator.stop());
