export { keyHandlers as handlers } from "./handlers.ts";
export { keyRoutes as routes } from "../../cells/edge/routes.ts";
