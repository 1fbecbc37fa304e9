-- Made by `./dev docs` from qmodel/operations.py, events.py and state/config.py. Change those.

local catalogue = {}

catalogue.most = 1000
catalogue.time = {kind = 'whole', low = 0, high = 89999999999999}
catalogue.request = {kind = 'id', most = 64}
catalogue.size = {kind = 'whole', low = 1, high = 100000}

local kinds = {
  {kind = 'name', most = 128},
  {kind = 'id', most = 128},
  {kind = 'text', most = 1048576},
  {kind = 'whole', low = -2147483648, high = 2147483647},
  {kind = 'whole', low = 0, high = 316224000000},
  {kind = 'whole', low = 0, high = 1000000},
  {kind = 'list', item = {kind = 'name', most = 128}, least = 0, optional = true},
  {kind = 'list', item = {kind = 'id', most = 128}, least = 0, optional = true},
  {kind = 'id', most = 64},
  {kind = 'operations', of = 'put', least = 1},
  {kind = 'whole', low = 1, high = 1000},
  {kind = 'flag'},
  {kind = 'whole', low = 0, high = 89999999999999},
  {kind = 'operations', of = 'complete', least = 1},
  {kind = 'name', most = 160},
  {kind = 'text', most = 65536},
  {kind = 'list', item = {kind = 'id', most = 128}, least = 1},
  {kind = 'text', most = 1024},
  {kind = 'list', item = {kind = 'name', most = 128}, least = 1},
  {kind = 'whole', low = 0, high = 1000000000},
}

catalogue.operations = {
  put = {
    reads = false, memo = false, asks = true,
    positional = {'queue', 'jid', 'klass', 'data'}, accepted = {kinds[1], kinds[2], kinds[1], kinds[3]}, lists = {'tags', 'depends'},
    new = function() return {queue = nil, jid = nil, klass = nil, data = nil, priority = nil, delay_ms = 0, retries = nil, tags = nil, depends = nil, request = nil} end,
    arguments = {
      queue = kinds[1],
      jid = kinds[2],
      klass = kinds[1],
      data = kinds[3],
      priority = kinds[4],
      delay_ms = kinds[5],
      retries = kinds[6],
      tags = kinds[7],
      depends = kinds[8],
      request = kinds[9],
    },
  },
  put_many = {
    reads = false, memo = false, asks = true,
    positional = {}, accepted = {}, lists = {'jobs'},
    new = function() return {jobs = nil, request = nil} end,
    arguments = {
      jobs = kinds[10],
      request = kinds[9],
    },
  },
  pop = {
    reads = false, memo = false, asks = true,
    positional = {'queue', 'worker'}, accepted = {kinds[1], kinds[1]}, lists = {},
    new = function() return {queue = nil, worker = nil, count = 1, wait = false, request = nil} end,
    arguments = {
      queue = kinds[1],
      worker = kinds[1],
      count = kinds[11],
      wait = kinds[12],
      request = kinds[9],
    },
  },
  peek = {
    reads = true, memo = false, asks = false,
    positional = {'queue'}, accepted = {kinds[1]}, lists = {},
    new = function() return {queue = nil, count = 1} end,
    arguments = {
      queue = kinds[1],
      count = kinds[11],
    },
  },
  complete = {
    reads = false, memo = false, asks = false,
    positional = {'jid', 'token'}, accepted = {kinds[2], kinds[13]}, lists = {'depends'},
    new = function() return {jid = nil, token = nil, result = '', data = nil, next = nil, delay_ms = 0, depends = {}} end,
    arguments = {
      jid = kinds[2],
      token = kinds[13],
      result = kinds[3],
      data = kinds[3],
      next = kinds[1],
      delay_ms = kinds[5],
      depends = kinds[8],
    },
  },
  complete_many = {
    reads = false, memo = false, asks = false,
    positional = {}, accepted = {}, lists = {'jobs'},
    new = function() return {jobs = nil} end,
    arguments = {
      jobs = kinds[14],
    },
  },
  complete_and_pop = {
    reads = false, memo = false, asks = true,
    positional = {'jid', 'token', 'queue', 'worker'}, accepted = {kinds[2], kinds[13], kinds[1], kinds[1]}, lists = {'depends'},
    new = function() return {jid = nil, token = nil, queue = nil, worker = nil, count = 1, wait = false, result = '', data = nil, next = nil, delay_ms = 0, depends = {}, request = nil} end,
    arguments = {
      jid = kinds[2],
      token = kinds[13],
      queue = kinds[1],
      worker = kinds[1],
      count = kinds[11],
      wait = kinds[12],
      result = kinds[3],
      data = kinds[3],
      next = kinds[1],
      delay_ms = kinds[5],
      depends = kinds[8],
      request = kinds[9],
    },
  },
  fail = {
    reads = false, memo = false, asks = false,
    positional = {'jid', 'token', 'group', 'message'}, accepted = {kinds[2], kinds[13], kinds[15], kinds[16]}, lists = {},
    new = function() return {jid = nil, token = nil, group = nil, message = nil, data = nil} end,
    arguments = {
      jid = kinds[2],
      token = kinds[13],
      group = kinds[15],
      message = kinds[16],
      data = kinds[3],
    },
  },
  retry = {
    reads = false, memo = false, asks = false,
    positional = {'jid', 'token'}, accepted = {kinds[2], kinds[13]}, lists = {},
    new = function() return {jid = nil, token = nil, delay_ms = 0, group = nil, message = ''} end,
    arguments = {
      jid = kinds[2],
      token = kinds[13],
      delay_ms = kinds[5],
      group = kinds[15],
      message = kinds[16],
    },
  },
  release = {
    reads = false, memo = false, asks = false,
    positional = {'jid', 'token'}, accepted = {kinds[2], kinds[13]}, lists = {},
    new = function() return {jid = nil, token = nil, delay_ms = 0, data = nil} end,
    arguments = {
      jid = kinds[2],
      token = kinds[13],
      delay_ms = kinds[5],
      data = kinds[3],
    },
  },
  heartbeat = {
    reads = false, memo = false, asks = false,
    positional = {'jid', 'token'}, accepted = {kinds[2], kinds[13]}, lists = {},
    new = function() return {jid = nil, token = nil, data = nil} end,
    arguments = {
      jid = kinds[2],
      token = kinds[13],
      data = kinds[3],
    },
  },
  timeout = {
    reads = false, memo = true, asks = true,
    positional = {}, accepted = {}, lists = {'jids'},
    new = function() return {jids = nil, request = nil} end,
    arguments = {
      jids = kinds[17],
      request = kinds[9],
    },
  },
  update = {
    reads = false, memo = true, asks = true,
    positional = {'jid', 'data'}, accepted = {kinds[2], kinds[3]}, lists = {},
    new = function() return {jid = nil, data = nil, request = nil} end,
    arguments = {
      jid = kinds[2],
      data = kinds[3],
      request = kinds[9],
    },
  },
  priority = {
    reads = false, memo = true, asks = true,
    positional = {'jid', 'priority'}, accepted = {kinds[2], kinds[4]}, lists = {},
    new = function() return {jid = nil, priority = nil, request = nil} end,
    arguments = {
      jid = kinds[2],
      priority = kinds[4],
      request = kinds[9],
    },
  },
  delay = {
    reads = false, memo = true, asks = true,
    positional = {'jid', 'delay_ms'}, accepted = {kinds[2], kinds[5]}, lists = {},
    new = function() return {jid = nil, delay_ms = nil, request = nil} end,
    arguments = {
      jid = kinds[2],
      delay_ms = kinds[5],
      request = kinds[9],
    },
  },
  promote = {
    reads = false, memo = true, asks = true,
    positional = {'jid'}, accepted = {kinds[2]}, lists = {},
    new = function() return {jid = nil, request = nil} end,
    arguments = {
      jid = kinds[2],
      request = kinds[9],
    },
  },
  log = {
    reads = false, memo = true, asks = true,
    positional = {'jid', 'message'}, accepted = {kinds[2], kinds[18]}, lists = {},
    new = function() return {jid = nil, message = nil, request = nil} end,
    arguments = {
      jid = kinds[2],
      message = kinds[18],
      request = kinds[9],
    },
  },
  progress = {
    reads = false, memo = true, asks = true,
    positional = {'jid', 'token', 'progress'}, accepted = {kinds[2], kinds[13], kinds[18]}, lists = {},
    new = function() return {jid = nil, token = nil, progress = nil, request = nil} end,
    arguments = {
      jid = kinds[2],
      token = kinds[13],
      progress = kinds[18],
      request = kinds[9],
    },
  },
  cancel = {
    reads = false, memo = true, asks = true,
    positional = {}, accepted = {}, lists = {'jids'},
    new = function() return {jids = nil, cascade = false, request = nil} end,
    arguments = {
      jids = kinds[17],
      cascade = kinds[12],
      request = kinds[9],
    },
  },
  drain = {
    reads = false, memo = true, asks = true,
    positional = {'queue'}, accepted = {kinds[1]}, lists = {},
    new = function() return {queue = nil, count = 1000, request = nil} end,
    arguments = {
      queue = kinds[1],
      count = kinds[11],
      request = kinds[9],
    },
  },
  depends_on = {
    reads = false, memo = true, asks = true,
    positional = {'jid'}, accepted = {kinds[2]}, lists = {'dependencies'},
    new = function() return {jid = nil, dependencies = nil, request = nil} end,
    arguments = {
      jid = kinds[2],
      dependencies = kinds[17],
      request = kinds[9],
    },
  },
  depends_off = {
    reads = false, memo = true, asks = true,
    positional = {'jid'}, accepted = {kinds[2]}, lists = {'dependencies'},
    new = function() return {jid = nil, dependencies = {}, all = false, request = nil} end,
    arguments = {
      jid = kinds[2],
      dependencies = kinds[8],
      all = kinds[12],
      request = kinds[9],
    },
  },
  tag_add = {
    reads = false, memo = true, asks = true,
    positional = {'jid'}, accepted = {kinds[2]}, lists = {'tags'},
    new = function() return {jid = nil, tags = nil, request = nil} end,
    arguments = {
      jid = kinds[2],
      tags = kinds[19],
      request = kinds[9],
    },
  },
  tag_remove = {
    reads = false, memo = true, asks = true,
    positional = {'jid'}, accepted = {kinds[2]}, lists = {'tags'},
    new = function() return {jid = nil, tags = nil, request = nil} end,
    arguments = {
      jid = kinds[2],
      tags = kinds[19],
      request = kinds[9],
    },
  },
  tagged = {
    reads = true, memo = false, asks = false,
    positional = {'tag'}, accepted = {kinds[1]}, lists = {},
    new = function() return {tag = nil, offset = 0, count = 25} end,
    arguments = {
      tag = kinds[1],
      offset = kinds[20],
      count = kinds[11],
    },
  },
  top_tags = {
    reads = true, memo = false, asks = false,
    positional = {}, accepted = {}, lists = {},
    new = function() return {offset = 0, count = 25} end,
    arguments = {
      offset = kinds[20],
      count = kinds[11],
    },
  },
  track = {
    reads = false, memo = true, asks = true,
    positional = {'jid'}, accepted = {kinds[2]}, lists = {},
    new = function() return {jid = nil, request = nil} end,
    arguments = {
      jid = kinds[2],
      request = kinds[9],
    },
  },
  untrack = {
    reads = false, memo = true, asks = true,
    positional = {'jid'}, accepted = {kinds[2]}, lists = {},
    new = function() return {jid = nil, request = nil} end,
    arguments = {
      jid = kinds[2],
      request = kinds[9],
    },
  },
  tracked = {
    reads = true, memo = false, asks = false,
    positional = {}, accepted = {}, lists = {},
    new = function() return {offset = 0, count = 25} end,
    arguments = {
      offset = kinds[20],
      count = kinds[11],
    },
  },
  failed_groups = {
    reads = true, memo = false, asks = false,
    positional = {}, accepted = {}, lists = {},
    new = function() return {offset = 0, count = 25} end,
    arguments = {
      offset = kinds[20],
      count = kinds[11],
    },
  },
  failed = {
    reads = true, memo = false, asks = false,
    positional = {'group'}, accepted = {kinds[15]}, lists = {},
    new = function() return {group = nil, offset = 0, count = 25} end,
    arguments = {
      group = kinds[15],
      offset = kinds[20],
      count = kinds[11],
    },
  },
  unfail = {
    reads = false, memo = true, asks = true,
    positional = {'queue', 'group'}, accepted = {kinds[1], kinds[15]}, lists = {},
    new = function() return {queue = nil, group = nil, count = 25, request = nil} end,
    arguments = {
      queue = kinds[1],
      group = kinds[15],
      count = kinds[11],
      request = kinds[9],
    },
  },
  get = {
    reads = true, memo = false, asks = false,
    positional = {'jid'}, accepted = {kinds[2]}, lists = {},
    new = function() return {jid = nil} end,
    arguments = {
      jid = kinds[2],
    },
  },
  multiget = {
    reads = true, memo = false, asks = false,
    positional = {}, accepted = {}, lists = {'jids'},
    new = function() return {jids = nil} end,
    arguments = {
      jids = kinds[17],
    },
  },
  waiting = {
    reads = true, memo = false, asks = false,
    positional = {'queue'}, accepted = {kinds[1]}, lists = {},
    new = function() return {queue = nil, offset = 0, count = 25} end,
    arguments = {
      queue = kinds[1],
      offset = kinds[20],
      count = kinds[11],
    },
  },
  scheduled = {
    reads = true, memo = false, asks = false,
    positional = {'queue'}, accepted = {kinds[1]}, lists = {},
    new = function() return {queue = nil, offset = 0, count = 25} end,
    arguments = {
      queue = kinds[1],
      offset = kinds[20],
      count = kinds[11],
    },
  },
  depending = {
    reads = true, memo = false, asks = false,
    positional = {'queue'}, accepted = {kinds[1]}, lists = {},
    new = function() return {queue = nil, offset = 0, count = 25} end,
    arguments = {
      queue = kinds[1],
      offset = kinds[20],
      count = kinds[11],
    },
  },
  running = {
    reads = true, memo = false, asks = false,
    positional = {'queue'}, accepted = {kinds[1]}, lists = {},
    new = function() return {queue = nil, offset = 0, count = 25} end,
    arguments = {
      queue = kinds[1],
      offset = kinds[20],
      count = kinds[11],
    },
  },
  stalled = {
    reads = true, memo = false, asks = false,
    positional = {'queue'}, accepted = {kinds[1]}, lists = {},
    new = function() return {queue = nil, offset = 0, count = 25} end,
    arguments = {
      queue = kinds[1],
      offset = kinds[20],
      count = kinds[11],
    },
  },
  completed = {
    reads = true, memo = false, asks = false,
    positional = {}, accepted = {}, lists = {},
    new = function() return {offset = 0, count = 25} end,
    arguments = {
      offset = kinds[20],
      count = kinds[11],
    },
  },
  queues = {
    reads = true, memo = false, asks = false,
    positional = {}, accepted = {}, lists = {},
    new = function() return {offset = 0, count = 25} end,
    arguments = {
      offset = kinds[20],
      count = kinds[11],
    },
  },
  queue = {
    reads = true, memo = false, asks = false,
    positional = {'queue'}, accepted = {kinds[1]}, lists = {},
    new = function() return {queue = nil} end,
    arguments = {
      queue = kinds[1],
    },
  },
  length = {
    reads = true, memo = false, asks = false,
    positional = {'queue'}, accepted = {kinds[1]}, lists = {},
    new = function() return {queue = nil} end,
    arguments = {
      queue = kinds[1],
    },
  },
  workers = {
    reads = true, memo = false, asks = false,
    positional = {}, accepted = {}, lists = {},
    new = function() return {offset = 0, count = 25} end,
    arguments = {
      offset = kinds[20],
      count = kinds[11],
    },
  },
  worker = {
    reads = true, memo = false, asks = false,
    positional = {'worker'}, accepted = {kinds[1]}, lists = {},
    new = function() return {worker = nil} end,
    arguments = {
      worker = kinds[1],
    },
  },
  stats = {
    reads = true, memo = false, asks = false,
    positional = {'queue'}, accepted = {kinds[1]}, lists = {},
    new = function() return {queue = nil, at = nil} end,
    arguments = {
      queue = kinds[1],
      at = kinds[13],
    },
  },
  events = {
    reads = true, memo = false, asks = false,
    positional = {}, accepted = {}, lists = {},
    new = function() return {after = 0, count = 100} end,
    arguments = {
      after = kinds[13],
      count = kinds[11],
    },
  },
  pause = {
    reads = false, memo = true, asks = true,
    positional = {}, accepted = {}, lists = {'queues'},
    new = function() return {queues = nil, request = nil} end,
    arguments = {
      queues = kinds[19],
      request = kinds[9],
    },
  },
  unpause = {
    reads = false, memo = true, asks = true,
    positional = {}, accepted = {}, lists = {'queues'},
    new = function() return {queues = nil, request = nil} end,
    arguments = {
      queues = kinds[19],
      request = kinds[9],
    },
  },
  forget = {
    reads = false, memo = true, asks = true,
    positional = {}, accepted = {}, lists = {'queues'},
    new = function() return {queues = nil, request = nil} end,
    arguments = {
      queues = kinds[19],
      request = kinds[9],
    },
  },
  deregister = {
    reads = false, memo = true, asks = true,
    positional = {}, accepted = {}, lists = {'workers'},
    new = function() return {workers = nil, request = nil} end,
    arguments = {
      workers = kinds[19],
      request = kinds[9],
    },
  },
  config = {
    reads = true, memo = false, asks = false,
    positional = {}, accepted = {}, lists = {},
    new = function() return {} end,
    arguments = {
    },
  },
  config_get = {
    reads = true, memo = false, asks = false,
    positional = {'option'}, accepted = {kinds[15]}, lists = {},
    new = function() return {option = nil} end,
    arguments = {
      option = kinds[15],
    },
  },
  config_set = {
    reads = false, memo = true, asks = true,
    positional = {'option', 'value'}, accepted = {kinds[15], kinds[13]}, lists = {},
    new = function() return {option = nil, value = nil, request = nil} end,
    arguments = {
      option = kinds[15],
      value = kinds[13],
      request = kinds[9],
    },
  },
  config_unset = {
    reads = false, memo = true, asks = true,
    positional = {'option'}, accepted = {kinds[15]}, lists = {},
    new = function() return {option = nil, request = nil} end,
    arguments = {
      option = kinds[15],
      request = kinds[9],
    },
  },
}

catalogue.options = {
  ['heartbeat'] = {default = 60000, low = 1, high = 31622400000},
  ['grace-period'] = {default = 10000, low = 0, high = 31622400000},
  ['jobs-history'] = {default = 604800000, low = 0, high = 316224000000},
  ['jobs-history-count'] = {default = 50000, low = 0, high = 1000000000},
  ['stats-history'] = {default = 30, low = 0, high = 3660},
  ['histogram-history'] = {default = 7, low = 0, high = 3660},
  ['max-job-history'] = {default = 100, low = 4, high = 1000},
  ['max-worker-age'] = {default = 86400000, low = 0, high = 316224000000},
  ['max-events'] = {default = 10000, low = 1, high = 10000000},
}

catalogue.option_names = {
  'heartbeat',
  'grace-period',
  'jobs-history',
  'jobs-history-count',
  'stats-history',
  'histogram-history',
  'max-job-history',
  'max-worker-age',
  'max-events',
}
