import { bundleConsole } from './bundle.ts' with { type: 'macro' }

/** Scripts and style of the console. */
export const consoleFiles = bundleConsole()
