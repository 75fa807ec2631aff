// Reading and checking policy files, which takes libraries that most of a start would go into. In dist/ it is a file of
// its own with those libraries and its compiled code beside it, like judgement.ts.
export { checkPolicy, loadLayer, loadWorkspaceFile } from '../policy/load.ts';
