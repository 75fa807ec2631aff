// What is validated with zod: policy files, and the options of the library. In dist/ it is a file of its own with its
// libraries and its compiled code beside it, like judgement.ts: most starts of the command line do without.
export { checkPolicy, loadLayer, loadWorkspaceFile } from '../policy/load.ts';
export { readOptions } from './resolve/read-options.ts';
