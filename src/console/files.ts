import { bundleConsole } from './bundle.ts' with { type: 'macro' }

/** Script and style of the console. */
export const consoleFiles = bundleConsole()
