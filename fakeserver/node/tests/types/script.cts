// The same classes for suites that are no modules.
import fakeserver = require('fakeserver')

export const server: fakeserver.Server = fakeserver.useServer()
export const error = (report: fakeserver.Report): fakeserver.RaceError => new fakeserver.RaceError(report)
