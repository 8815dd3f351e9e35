// The first match is used. The order matters, because the user agents of most browsers also name the browsers
// from which they descend.
const browsers: [RegExp, string][] = [
  [/Edg(e|A|iOS)?\//, 'Edge'],
  [/OPR\/|Opera/, 'Opera'],
  [/SamsungBrowser\//, 'Samsung Internet'],
  [/Firefox\/|FxiOS\//, 'Firefox'],
  [/Chrome\/|CriOS\//, 'Chrome'],
  [/Safari\//, 'Safari'],
  [/curl\//, 'curl'],
]
const systems: [RegExp, string][] = [
  [/iPhone|iPod/, 'iPhone'],
  [/iPad/, 'iPad'],
  [/Android/, 'Android'],
  [/Windows/, 'Windows'],
  [/CrOS/, 'ChromeOS'],
  [/Mac OS X|Macintosh/, 'macOS'],
  [/Linux/, 'Linux'],
]

/** Returns the browser and the operating system of a user agent. Each is undefined when it is unknown. */
export const deviceOf = (user_agent: string) => ({
  browser: browsers.find(([pattern]) => pattern.test(user_agent))?.[1],
  system: systems.find(([pattern]) => pattern.test(user_agent))?.[1],
})
