'use strict'
const { RaceError, race } = require('./race.cjs')
const { startServer, useServer } = require('./server.cjs')

module.exports = { RaceError, race, startServer, useServer }
