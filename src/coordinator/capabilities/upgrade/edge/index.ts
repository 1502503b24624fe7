export { upgradeHandlers as handlers } from "./handlers.ts";
export { upgradeRoutes as routes } from "./routes.ts";
