/** The version of the package that has this program. */
export { version as VERSION } from "../../../package.json";
