export { typeHandlers as handlers } from "./handlers.ts";
export { typeRoutes as routes } from "./routes.ts";
