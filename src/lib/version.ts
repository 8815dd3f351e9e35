import project from '../../package.json' with { type: 'json' }
import { commit } from './build-info.ts' with { type: 'macro' }

/** Version of Gatehouse, from package.json. */
export const VERSION: string = project.version

/** Version, commit and runtime, such as `0.1.0 (0123456789ab, Bun 1.4.5)`. */
export const VERSION_LINE = `${VERSION} (${commit().id}, Bun ${Bun.version})`
