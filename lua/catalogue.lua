-- Made by `./dev docs` from qmodel/operations.py, events.py and state/config.py. Change those.

local catalogue = {}

catalogue.most = 1000
catalogue.time = {kind = 'whole', low = 0, high = 89999999999999}
catalogue.request = {kind = 'id', most = 64}
catalogue.size = {kind = 'whole', low = 1, high = 100000}

catalogue.operations = {
  put = {
    reads = false, memo = false, asks = true,
    positional = {'queue', 'jid', 'klass', 'data'}, lists = {'tags', 'depends'},
    new = function() return {queue = nil, jid = nil, klass = nil, data = nil, priority = nil, delay_ms = 0, retries = nil, tags = nil, depends = nil, request = nil} end,
    arguments = {
      queue = {kind = 'name', most = 128},
      jid = {kind = 'id', most = 128},
      klass = {kind = 'name', most = 128},
      data = {kind = 'text', most = 1048576},
      priority = {kind = 'whole', low = -2147483648, high = 2147483647},
      delay_ms = {kind = 'whole', low = 0, high = 316224000000},
      retries = {kind = 'whole', low = 0, high = 1000000},
      tags = {kind = 'list', item = {kind = 'name', most = 128}, least = 0, optional = true},
      depends = {kind = 'list', item = {kind = 'id', most = 128}, least = 0, optional = true},
      request = {kind = 'id', most = 64},
    },
  },
  put_many = {
    reads = false, memo = false, asks = true,
    positional = {}, lists = {'jobs'},
    new = function() return {jobs = nil, request = nil} end,
    arguments = {
      jobs = {kind = 'operations', of = 'put', least = 1},
      request = {kind = 'id', most = 64},
    },
  },
  pop = {
    reads = false, memo = false, asks = true,
    positional = {'queue', 'worker'}, lists = {},
    new = function() return {queue = nil, worker = nil, count = 1, wait = false, request = nil} end,
    arguments = {
      queue = {kind = 'name', most = 128},
      worker = {kind = 'name', most = 128},
      count = {kind = 'whole', low = 1, high = 1000},
      wait = {kind = 'flag'},
      request = {kind = 'id', most = 64},
    },
  },
  peek = {
    reads = true, memo = false, asks = false,
    positional = {'queue'}, lists = {},
    new = function() return {queue = nil, count = 1} end,
    arguments = {
      queue = {kind = 'name', most = 128},
      count = {kind = 'whole', low = 1, high = 1000},
    },
  },
  complete = {
    reads = false, memo = false, asks = false,
    positional = {'jid', 'token'}, lists = {'depends'},
    new = function() return {jid = nil, token = nil, result = '', data = nil, next = nil, delay_ms = 0, depends = {}} end,
    arguments = {
      jid = {kind = 'id', most = 128},
      token = {kind = 'whole', low = 0, high = 89999999999999},
      result = {kind = 'text', most = 1048576},
      data = {kind = 'text', most = 1048576},
      next = {kind = 'name', most = 128},
      delay_ms = {kind = 'whole', low = 0, high = 316224000000},
      depends = {kind = 'list', item = {kind = 'id', most = 128}, least = 0, optional = true},
    },
  },
  complete_many = {
    reads = false, memo = false, asks = false,
    positional = {}, lists = {'jobs'},
    new = function() return {jobs = nil} end,
    arguments = {
      jobs = {kind = 'operations', of = 'complete', least = 1},
    },
  },
  complete_and_pop = {
    reads = false, memo = false, asks = true,
    positional = {'jid', 'token', 'queue', 'worker'}, lists = {'depends'},
    new = function() return {jid = nil, token = nil, queue = nil, worker = nil, count = 1, wait = false, result = '', data = nil, next = nil, delay_ms = 0, depends = {}, request = nil} end,
    arguments = {
      jid = {kind = 'id', most = 128},
      token = {kind = 'whole', low = 0, high = 89999999999999},
      queue = {kind = 'name', most = 128},
      worker = {kind = 'name', most = 128},
      count = {kind = 'whole', low = 1, high = 1000},
      wait = {kind = 'flag'},
      result = {kind = 'text', most = 1048576},
      data = {kind = 'text', most = 1048576},
      next = {kind = 'name', most = 128},
      delay_ms = {kind = 'whole', low = 0, high = 316224000000},
      depends = {kind = 'list', item = {kind = 'id', most = 128}, least = 0, optional = true},
      request = {kind = 'id', most = 64},
    },
  },
  fail = {
    reads = false, memo = false, asks = false,
    positional = {'jid', 'token', 'group', 'message'}, lists = {},
    new = function() return {jid = nil, token = nil, group = nil, message = nil, data = nil} end,
    arguments = {
      jid = {kind = 'id', most = 128},
      token = {kind = 'whole', low = 0, high = 89999999999999},
      group = {kind = 'name', most = 160},
      message = {kind = 'text', most = 65536},
      data = {kind = 'text', most = 1048576},
    },
  },
  retry = {
    reads = false, memo = false, asks = false,
    positional = {'jid', 'token'}, lists = {},
    new = function() return {jid = nil, token = nil, delay_ms = 0, group = nil, message = ''} end,
    arguments = {
      jid = {kind = 'id', most = 128},
      token = {kind = 'whole', low = 0, high = 89999999999999},
      delay_ms = {kind = 'whole', low = 0, high = 316224000000},
      group = {kind = 'name', most = 160},
      message = {kind = 'text', most = 65536},
    },
  },
  release = {
    reads = false, memo = false, asks = false,
    positional = {'jid', 'token'}, lists = {},
    new = function() return {jid = nil, token = nil, delay_ms = 0, data = nil} end,
    arguments = {
      jid = {kind = 'id', most = 128},
      token = {kind = 'whole', low = 0, high = 89999999999999},
      delay_ms = {kind = 'whole', low = 0, high = 316224000000},
      data = {kind = 'text', most = 1048576},
    },
  },
  heartbeat = {
    reads = false, memo = false, asks = false,
    positional = {'jid', 'token'}, lists = {},
    new = function() return {jid = nil, token = nil, data = nil} end,
    arguments = {
      jid = {kind = 'id', most = 128},
      token = {kind = 'whole', low = 0, high = 89999999999999},
      data = {kind = 'text', most = 1048576},
    },
  },
  timeout = {
    reads = false, memo = true, asks = true,
    positional = {}, lists = {'jids'},
    new = function() return {jids = nil, request = nil} end,
    arguments = {
      jids = {kind = 'list', item = {kind = 'id', most = 128}, least = 1},
      request = {kind = 'id', most = 64},
    },
  },
  update = {
    reads = false, memo = true, asks = true,
    positional = {'jid', 'data'}, lists = {},
    new = function() return {jid = nil, data = nil, request = nil} end,
    arguments = {
      jid = {kind = 'id', most = 128},
      data = {kind = 'text', most = 1048576},
      request = {kind = 'id', most = 64},
    },
  },
  priority = {
    reads = false, memo = true, asks = true,
    positional = {'jid', 'priority'}, lists = {},
    new = function() return {jid = nil, priority = nil, request = nil} end,
    arguments = {
      jid = {kind = 'id', most = 128},
      priority = {kind = 'whole', low = -2147483648, high = 2147483647},
      request = {kind = 'id', most = 64},
    },
  },
  delay = {
    reads = false, memo = true, asks = true,
    positional = {'jid', 'delay_ms'}, lists = {},
    new = function() return {jid = nil, delay_ms = nil, request = nil} end,
    arguments = {
      jid = {kind = 'id', most = 128},
      delay_ms = {kind = 'whole', low = 0, high = 316224000000},
      request = {kind = 'id', most = 64},
    },
  },
  promote = {
    reads = false, memo = true, asks = true,
    positional = {'jid'}, lists = {},
    new = function() return {jid = nil, request = nil} end,
    arguments = {
      jid = {kind = 'id', most = 128},
      request = {kind = 'id', most = 64},
    },
  },
  log = {
    reads = false, memo = true, asks = true,
    positional = {'jid', 'message'}, lists = {},
    new = function() return {jid = nil, message = nil, request = nil} end,
    arguments = {
      jid = {kind = 'id', most = 128},
      message = {kind = 'text', most = 1024},
      request = {kind = 'id', most = 64},
    },
  },
  progress = {
    reads = false, memo = true, asks = true,
    positional = {'jid', 'token', 'progress'}, lists = {},
    new = function() return {jid = nil, token = nil, progress = nil, request = nil} end,
    arguments = {
      jid = {kind = 'id', most = 128},
      token = {kind = 'whole', low = 0, high = 89999999999999},
      progress = {kind = 'text', most = 1024},
      request = {kind = 'id', most = 64},
    },
  },
  cancel = {
    reads = false, memo = true, asks = true,
    positional = {}, lists = {'jids'},
    new = function() return {jids = nil, cascade = false, request = nil} end,
    arguments = {
      jids = {kind = 'list', item = {kind = 'id', most = 128}, least = 1},
      cascade = {kind = 'flag'},
      request = {kind = 'id', most = 64},
    },
  },
  drain = {
    reads = false, memo = true, asks = true,
    positional = {'queue'}, lists = {},
    new = function() return {queue = nil, count = 1000, request = nil} end,
    arguments = {
      queue = {kind = 'name', most = 128},
      count = {kind = 'whole', low = 1, high = 1000},
      request = {kind = 'id', most = 64},
    },
  },
  depends_on = {
    reads = false, memo = true, asks = true,
    positional = {'jid'}, lists = {'dependencies'},
    new = function() return {jid = nil, dependencies = nil, request = nil} end,
    arguments = {
      jid = {kind = 'id', most = 128},
      dependencies = {kind = 'list', item = {kind = 'id', most = 128}, least = 1},
      request = {kind = 'id', most = 64},
    },
  },
  depends_off = {
    reads = false, memo = true, asks = true,
    positional = {'jid'}, lists = {'dependencies'},
    new = function() return {jid = nil, dependencies = {}, all = false, request = nil} end,
    arguments = {
      jid = {kind = 'id', most = 128},
      dependencies = {kind = 'list', item = {kind = 'id', most = 128}, least = 0, optional = true},
      all = {kind = 'flag'},
      request = {kind = 'id', most = 64},
    },
  },
  tag_add = {
    reads = false, memo = true, asks = true,
    positional = {'jid'}, lists = {'tags'},
    new = function() return {jid = nil, tags = nil, request = nil} end,
    arguments = {
      jid = {kind = 'id', most = 128},
      tags = {kind = 'list', item = {kind = 'name', most = 128}, least = 1},
      request = {kind = 'id', most = 64},
    },
  },
  tag_remove = {
    reads = false, memo = true, asks = true,
    positional = {'jid'}, lists = {'tags'},
    new = function() return {jid = nil, tags = nil, request = nil} end,
    arguments = {
      jid = {kind = 'id', most = 128},
      tags = {kind = 'list', item = {kind = 'name', most = 128}, least = 1},
      request = {kind = 'id', most = 64},
    },
  },
  tagged = {
    reads = true, memo = false, asks = false,
    positional = {'tag'}, lists = {},
    new = function() return {tag = nil, offset = 0, count = 25} end,
    arguments = {
      tag = {kind = 'name', most = 128},
      offset = {kind = 'whole', low = 0, high = 1000000000},
      count = {kind = 'whole', low = 1, high = 1000},
    },
  },
  top_tags = {
    reads = true, memo = false, asks = false,
    positional = {}, lists = {},
    new = function() return {offset = 0, count = 25} end,
    arguments = {
      offset = {kind = 'whole', low = 0, high = 1000000000},
      count = {kind = 'whole', low = 1, high = 1000},
    },
  },
  track = {
    reads = false, memo = true, asks = true,
    positional = {'jid'}, lists = {},
    new = function() return {jid = nil, request = nil} end,
    arguments = {
      jid = {kind = 'id', most = 128},
      request = {kind = 'id', most = 64},
    },
  },
  untrack = {
    reads = false, memo = true, asks = true,
    positional = {'jid'}, lists = {},
    new = function() return {jid = nil, request = nil} end,
    arguments = {
      jid = {kind = 'id', most = 128},
      request = {kind = 'id', most = 64},
    },
  },
  tracked = {
    reads = true, memo = false, asks = false,
    positional = {}, lists = {},
    new = function() return {offset = 0, count = 25} end,
    arguments = {
      offset = {kind = 'whole', low = 0, high = 1000000000},
      count = {kind = 'whole', low = 1, high = 1000},
    },
  },
  failed_groups = {
    reads = true, memo = false, asks = false,
    positional = {}, lists = {},
    new = function() return {offset = 0, count = 25} end,
    arguments = {
      offset = {kind = 'whole', low = 0, high = 1000000000},
      count = {kind = 'whole', low = 1, high = 1000},
    },
  },
  failed = {
    reads = true, memo = false, asks = false,
    positional = {'group'}, lists = {},
    new = function() return {group = nil, offset = 0, count = 25} end,
    arguments = {
      group = {kind = 'name', most = 160},
      offset = {kind = 'whole', low = 0, high = 1000000000},
      count = {kind = 'whole', low = 1, high = 1000},
    },
  },
  unfail = {
    reads = false, memo = true, asks = true,
    positional = {'queue', 'group'}, lists = {},
    new = function() return {queue = nil, group = nil, count = 25, request = nil} end,
    arguments = {
      queue = {kind = 'name', most = 128},
      group = {kind = 'name', most = 160},
      count = {kind = 'whole', low = 1, high = 1000},
      request = {kind = 'id', most = 64},
    },
  },
  get = {
    reads = true, memo = false, asks = false,
    positional = {'jid'}, lists = {},
    new = function() return {jid = nil} end,
    arguments = {
      jid = {kind = 'id', most = 128},
    },
  },
  multiget = {
    reads = true, memo = false, asks = false,
    positional = {}, lists = {'jids'},
    new = function() return {jids = nil} end,
    arguments = {
      jids = {kind = 'list', item = {kind = 'id', most = 128}, least = 1},
    },
  },
  waiting = {
    reads = true, memo = false, asks = false,
    positional = {'queue'}, lists = {},
    new = function() return {queue = nil, offset = 0, count = 25} end,
    arguments = {
      queue = {kind = 'name', most = 128},
      offset = {kind = 'whole', low = 0, high = 1000000000},
      count = {kind = 'whole', low = 1, high = 1000},
    },
  },
  scheduled = {
    reads = true, memo = false, asks = false,
    positional = {'queue'}, lists = {},
    new = function() return {queue = nil, offset = 0, count = 25} end,
    arguments = {
      queue = {kind = 'name', most = 128},
      offset = {kind = 'whole', low = 0, high = 1000000000},
      count = {kind = 'whole', low = 1, high = 1000},
    },
  },
  depending = {
    reads = true, memo = false, asks = false,
    positional = {'queue'}, lists = {},
    new = function() return {queue = nil, offset = 0, count = 25} end,
    arguments = {
      queue = {kind = 'name', most = 128},
      offset = {kind = 'whole', low = 0, high = 1000000000},
      count = {kind = 'whole', low = 1, high = 1000},
    },
  },
  running = {
    reads = true, memo = false, asks = false,
    positional = {'queue'}, lists = {},
    new = function() return {queue = nil, offset = 0, count = 25} end,
    arguments = {
      queue = {kind = 'name', most = 128},
      offset = {kind = 'whole', low = 0, high = 1000000000},
      count = {kind = 'whole', low = 1, high = 1000},
    },
  },
  stalled = {
    reads = true, memo = false, asks = false,
    positional = {'queue'}, lists = {},
    new = function() return {queue = nil, offset = 0, count = 25} end,
    arguments = {
      queue = {kind = 'name', most = 128},
      offset = {kind = 'whole', low = 0, high = 1000000000},
      count = {kind = 'whole', low = 1, high = 1000},
    },
  },
  completed = {
    reads = true, memo = false, asks = false,
    positional = {}, lists = {},
    new = function() return {offset = 0, count = 25} end,
    arguments = {
      offset = {kind = 'whole', low = 0, high = 1000000000},
      count = {kind = 'whole', low = 1, high = 1000},
    },
  },
  queues = {
    reads = true, memo = false, asks = false,
    positional = {}, lists = {},
    new = function() return {offset = 0, count = 25} end,
    arguments = {
      offset = {kind = 'whole', low = 0, high = 1000000000},
      count = {kind = 'whole', low = 1, high = 1000},
    },
  },
  queue = {
    reads = true, memo = false, asks = false,
    positional = {'queue'}, lists = {},
    new = function() return {queue = nil} end,
    arguments = {
      queue = {kind = 'name', most = 128},
    },
  },
  length = {
    reads = true, memo = false, asks = false,
    positional = {'queue'}, lists = {},
    new = function() return {queue = nil} end,
    arguments = {
      queue = {kind = 'name', most = 128},
    },
  },
  workers = {
    reads = true, memo = false, asks = false,
    positional = {}, lists = {},
    new = function() return {offset = 0, count = 25} end,
    arguments = {
      offset = {kind = 'whole', low = 0, high = 1000000000},
      count = {kind = 'whole', low = 1, high = 1000},
    },
  },
  worker = {
    reads = true, memo = false, asks = false,
    positional = {'worker'}, lists = {},
    new = function() return {worker = nil} end,
    arguments = {
      worker = {kind = 'name', most = 128},
    },
  },
  stats = {
    reads = true, memo = false, asks = false,
    positional = {'queue'}, lists = {},
    new = function() return {queue = nil, at = nil} end,
    arguments = {
      queue = {kind = 'name', most = 128},
      at = {kind = 'whole', low = 0, high = 89999999999999},
    },
  },
  events = {
    reads = true, memo = false, asks = false,
    positional = {}, lists = {},
    new = function() return {after = 0, count = 100} end,
    arguments = {
      after = {kind = 'whole', low = 0, high = 89999999999999},
      count = {kind = 'whole', low = 1, high = 1000},
    },
  },
  pause = {
    reads = false, memo = false, asks = false,
    positional = {}, lists = {'queues'},
    new = function() return {queues = nil} end,
    arguments = {
      queues = {kind = 'list', item = {kind = 'name', most = 128}, least = 1},
    },
  },
  unpause = {
    reads = false, memo = false, asks = false,
    positional = {}, lists = {'queues'},
    new = function() return {queues = nil} end,
    arguments = {
      queues = {kind = 'list', item = {kind = 'name', most = 128}, least = 1},
    },
  },
  forget = {
    reads = false, memo = false, asks = false,
    positional = {}, lists = {'queues'},
    new = function() return {queues = nil} end,
    arguments = {
      queues = {kind = 'list', item = {kind = 'name', most = 128}, least = 1},
    },
  },
  deregister = {
    reads = false, memo = false, asks = false,
    positional = {}, lists = {'workers'},
    new = function() return {workers = nil} end,
    arguments = {
      workers = {kind = 'list', item = {kind = 'name', most = 128}, least = 1},
    },
  },
  config = {
    reads = true, memo = false, asks = false,
    positional = {}, lists = {},
    new = function() return {} end,
    arguments = {
    },
  },
  config_get = {
    reads = true, memo = false, asks = false,
    positional = {'option'}, lists = {},
    new = function() return {option = nil} end,
    arguments = {
      option = {kind = 'name', most = 160},
    },
  },
  config_set = {
    reads = false, memo = false, asks = false,
    positional = {'option', 'value'}, lists = {},
    new = function() return {option = nil, value = nil} end,
    arguments = {
      option = {kind = 'name', most = 160},
      value = {kind = 'whole', low = 0, high = 89999999999999},
    },
  },
  config_unset = {
    reads = false, memo = false, asks = false,
    positional = {'option'}, lists = {},
    new = function() return {option = nil} end,
    arguments = {
      option = {kind = 'name', most = 160},
    },
  },
}

catalogue.events = {
  put = {'jid', 'queue', 'klass', 'state'},
  promoted = {'jid', 'queue'},
  unblocked = {'jid', 'queue', 'state'},
  delayed = {'jid', 'queue', 'ready_at'},
  unfailed = {'jid', 'queue', 'group'},
  popped = {'jid', 'queue', 'worker', 'wait_ms'},
  completed = {'jid', 'queue', 'worker', 'token', 'run_ms'},
  advanced = {'jid', 'queue', 'worker', 'token', 'run_ms', 'to', 'state'},
  failed = {'jid', 'queue', 'worker', 'token', 'group'},
  retried = {'jid', 'queue', 'worker', 'token', 'remaining', 'state'},
  released = {'jid', 'queue', 'worker', 'token', 'state'},
  lock_lost = {'jid', 'queue', 'worker', 'token', 'cause'},
  canceled = {'jid', 'queue', 'state'},
  retired = {'jid'},
  blocked = {'jid', 'dependencies'},
  prioritized = {'jid', 'priority'},
  updated = {'jid'},
  progressed = {'jid'},
  logged = {'jid'},
  tagged = {'jid', 'tag'},
  untagged = {'jid', 'tag'},
  tracked = {'jid'},
  untracked = {'jid'},
  paused = {'queue'},
  unpaused = {'queue'},
  forgotten = {'queue'},
  deregistered = {'worker'},
  configured = {'option', 'value'},
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
