export { credentialHandlers as handlers } from "./credentials-handler.ts";
export { credentialRoutes as routes } from "./routes.ts";
