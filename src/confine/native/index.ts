// The exports of this room for code outside of src: tests and scripts import nothing below it.
export {
  builtAddon,
  hostLibc,
  installedAddons,
  packageRoot,
  platformPackage,
  unfitFor,
} from './addon-locations.ts';
export type { NativeAddon } from './contract.ts';
export { loadAddon } from './load.ts';
