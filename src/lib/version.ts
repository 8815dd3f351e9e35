import project from '../../package.json' with { type: 'json' }

/** Version of Gatehouse, from package.json. */
export const VERSION: string = project.version
